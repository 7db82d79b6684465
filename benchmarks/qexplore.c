/* The exploration kernel of reprl.paper.q_agent in plain C: same words, same tables, same ties, same bits.
 *
 * Build: cc -O3 -march=native -ffp-contract=off -shared -fPIC. Contraction is off because a fused multiply-add rounds once
 * where the kernel rounds twice.
 */

#include <math.h>
#include <stdint.h>

#define TABLE 1024
#define WORDS 64

typedef struct {
    int64_t horizon, n_states, n_actions, row_shift, slot_shift;
    const int32_t *next_state;
    const uint64_t *row, *bucket;
    int64_t n_starts;
    const int64_t *start_state;
    const uint64_t *start_row, *start_bucket;
} World;

typedef struct {
    double scale, guide;
    const double *rate, *bonus;
} Schedule;

typedef struct {
    double *q;
    int64_t *visits, *choice;
    double *value;
    int64_t *hits;
} Agent;

static inline void philox(uint64_t key, uint64_t lane, uint64_t block, uint64_t *out) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)block, c1 = (uint32_t)(block >> 32), c2 = (uint32_t)lane, c3 = (uint32_t)(lane >> 32);
    for (int round = 0; round < 10; round++) {
        uint64_t left = (uint64_t)c0 * 0xD2511F53u, right = (uint64_t)c2 * 0xCD9E8D57u;
        c0 = (uint32_t)(right >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)right;
        c2 = (uint32_t)(left >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)left;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    out[0] = (uint64_t)c0 | (uint64_t)c1 << 32;
    out[1] = (uint64_t)c2 | (uint64_t)c3 << 32;
}

static inline uint64_t next_word(uint64_t key, uint64_t run, int64_t *position, uint64_t *words) {
    int64_t at = *position & (WORDS - 1);
    if (at == 0)
        for (int i = 0; i < WORDS / 2; i++)
            philox(key, run, ((uint64_t)*position >> 1) + (uint64_t)i, words + 2 * i);
    ++*position;
    return words[at];
}

static inline int64_t draw(const uint64_t *row, const uint64_t *bucket, int64_t i, uint64_t word) {
    uint64_t info = row[i], shift = info & 63;
    uint64_t at = ((info >> 6) + (word >> shift)) << 1;
    uint64_t pair = bucket[at + 1], within = word & (((uint64_t)1 << shift) - 1);
    return (int64_t)(within < bucket[at] ? pair & 0xFFFFFFFFu : pair >> 32);
}

static inline void update(Agent *agent, const Schedule *schedule, int64_t horizon, int64_t cell, int64_t action,
                          int64_t width, double future) {
    double *q = agent->q + cell * width;
    int64_t t = ++agent->visits[cell * width + action];
    double rate, bonus;
    if (t <= TABLE) {
        rate = schedule->rate[t - 1];
        bonus = schedule->bonus[t - 1];
    } else {
        rate = ((double)horizon + 1.0) / (double)(horizon + t);
        bonus = schedule->scale / sqrt((double)t);
    }
    if (2 * action < width)
        bonus *= schedule->guide;
    q[action] = (1.0 - rate) * q[action] + rate * (future + bonus);
    int64_t best = 0;
    double largest = q[0];
    for (int64_t a = 1; a < width; a++)
        if (q[a] > largest) {
            largest = q[a];
            best = a;
        }
    agent->choice[cell] = best;
    agent->value[cell] = largest < (double)horizon ? largest : (double)horizon;
}

static void restart(Agent *agent, const World *world) {
    int64_t S = world->n_states, A = world->n_actions, H = world->horizon, width = 2 * A;
    for (int64_t i = 0; i < H * S * width; i++) {
        agent->q[i] = (double)H;
        agent->visits[i] = 0;
    }
    for (int64_t i = 0; i < H * S; i++) {
        agent->choice[i] = 0;
        agent->value[i] = (double)H;
    }
    for (int64_t s = 0; s < S; s++) {
        int64_t cell = (H - 1) * S + s;
        agent->value[H * S + s] = 0.0;
        agent->choice[cell] = A;
        for (int64_t a = 0; a < A; a++)
            agent->q[cell * width + a] = -INFINITY;
    }
}

/* One run of `episodes` episodes from fresh tables; returns the samples drawn. */
int64_t explore_run(const World *given, const Schedule *schedule, Agent *agent, uint64_t key, uint64_t run,
                    int64_t episodes) {
    World world = *given;
    int64_t A = world.n_actions, width = 2 * A, position = 0;
    uint64_t words[WORDS];
    restart(agent, &world);
    for (int64_t k = 0; k < episodes; k++) {
        int64_t s = world.start_state[0];
        if (world.n_starts > 1)
            s = world.start_state[draw(world.start_row, world.start_bucket, 0, next_word(key, run, &position, words))];
        for (int64_t h = 0; h < world.horizon; h++) {
            int64_t cell = h * world.n_states + s, action = agent->choice[cell];
            int phantom = action >= A;
            int64_t row = h * world.row_shift + s * A + (phantom ? action - A : action);
            int64_t e = draw(world.row, world.bucket, row, next_word(key, run, &position, words));
            if (phantom) {
                agent->hits[e + h * world.slot_shift]++;
                update(agent, schedule, world.horizon, cell, action, width, 0.0);
                break;
            }
            s = world.next_state[e];
            update(agent, schedule, world.horizon, cell, action, width, agent->value[(h + 1) * world.n_states + s]);
        }
    }
    return position;
}
