// Exploration runs (QExplore, Algorithm 4) of a small world: one thread plays one run, with its tables in shared memory.
//
// The bits are those of reprl.paper.q_agent on the CPU: the same words of the same lanes, and no product is fused with
// a sum (-fmad=false). `play` plays all runs and returns 0, or the number of an error. STATES, ACTIONS, STEPS, SLOTS
// (outcomes of all steps), ROWS and BUCKETS (of the alias table) are given when this is compiled. A C++ compiler builds
// it too (-x c++ -ffp-contract=off): then one core plays the runs one after the other, which tests compare.

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#ifdef __CUDACC__
#include <cuda_runtime.h>
#else
#define __device__
#endif

namespace {

typedef unsigned long long word;
#ifdef __CUDACC__
constexpr int THREADS = 128;
#else
constexpr int THREADS = 1;
#endif
constexpr int WIDTH = 2 * ACTIONS, CELLS = STATES * STEPS;

struct Job {  // where pointers lead to is on the GPU, if there is one
    int runs, start, row_shift, slot_shift, n_next;
    word key;
    double scale;
    const word *row, *bucket;
    const int *next_state;
    double *q, *value;
    uint32_t *visits;
    long long *position;
    word *hits;
};

struct Block {  // tables of the runs of one block, entry by entry
    double q[CELLS * WIDTH][THREADS];
    double value[CELLS + STATES][THREADS];
    uint32_t visits[CELLS * WIDTH][THREADS];
    uint32_t hits[SLOTS][THREADS];
    int choice[CELLS][THREADS];
    word row[ROWS];
    word bucket[2 * BUCKETS];
    int next_state[SLOTS];
};

__device__ void philox(word key, word lane, word index, word *first, word *second) {
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    uint32_t c0 = (uint32_t)index, c1 = (uint32_t)(index >> 32), c2 = (uint32_t)lane, c3 = (uint32_t)(lane >> 32);
    for (int i = 0; i < 10; i++) {
        const word p0 = (word)c0 * 0xD2511F53u, p1 = (word)c2 * 0xCD9E8D57u;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    *first = c0 | ((word)c1 << 32);
    *second = c2 | ((word)c3 << 32);
}

__device__ void load(const Job &job, Block &at, long long run, int me, bool fresh) {
    for (int i = 0; i < SLOTS; i++) at.hits[i][me] = 0;
    for (int cell = 0; cell < CELLS; cell++) {
        int best = 0;
        for (int a = 0; a < WIDTH; a++) {
            const int i = cell * WIDTH + a;
            const bool offered = cell < CELLS - STATES || a >= ACTIONS;
            at.q[i][me] = fresh ? (offered ? (double)STEPS : -HUGE_VAL) : job.q[run * CELLS * WIDTH + i];
            at.visits[i][me] = fresh ? 0 : job.visits[run * CELLS * WIDTH + i];
            if (at.q[i][me] > at.q[cell * WIDTH + best][me]) best = a;
        }
        at.choice[cell][me] = best;
        at.value[cell][me] = fresh ? (double)STEPS : job.value[run * CELLS + cell];
    }
    for (int s = 0; s < STATES; s++) at.value[CELLS + s][me] = 0.0;
}

__device__ void store(const Job &job, const Block &at, long long run, int me) {
    for (int i = 0; i < CELLS * WIDTH; i++) {
        job.q[run * CELLS * WIDTH + i] = at.q[i][me];
        job.visits[run * CELLS * WIDTH + i] = at.visits[i][me];
    }
    for (int cell = 0; cell < CELLS; cell++) job.value[run * CELLS + cell] = at.value[cell][me];
#ifdef __CUDACC__
    for (int i = 0; i < SLOTS; i++) atomicAdd(job.hits + i, (word)at.hits[i][me]);
#else
    for (int i = 0; i < SLOTS; i++) job.hits[i] += at.hits[i][me];
#endif
}

__device__ void update(const Job &job, Block &at, int me, int cell, int action, double future) {
    const int base = cell * WIDTH;
    const uint32_t t = ++at.visits[base + action][me];
    const double rate = (STEPS + 1.0) / (STEPS + (double)t), bonus = job.scale / sqrt((double)t);
    at.q[base + action][me] = (1.0 - rate) * at.q[base + action][me] + rate * (future + bonus);
    int best = 0;
    double largest = at.q[base][me];
    for (int a = 1; a < WIDTH; a++) {
        const double other = at.q[base + a][me];
        if (other > largest) {
            largest = other;
            best = a;
        }
    }
    at.choice[cell][me] = best;
    at.value[cell][me] = largest < (double)STEPS ? largest : (double)STEPS;
}

__device__ void advance(const Job &job, Block &at, long long run, int me, long long episodes, bool fresh) {
    load(job, at, run, me, fresh);
    long long read = fresh ? 0 : job.position[run];
    word first = 0, second = 0;
    if (read & 1) philox(job.key, run, read >> 1, &first, &second);
    for (long long episode = 0; episode < episodes; episode++) {
        int s = job.start;
        for (int h = 0; h < STEPS; h++) {
            const int cell = h * STATES + s, action = at.choice[cell][me];
            const bool phantom = action >= ACTIONS;
            if (!(read & 1)) philox(job.key, run, read >> 1, &first, &second);
            const word drawn = read & 1 ? second : first;
            read++;
            const word info = at.row[h * job.row_shift + s * ACTIONS + (phantom ? action - ACTIONS : action)];
            const int shift = (int)(info & 63);
            const word place = ((info >> 6) + (drawn >> shift)) << 1, pair = at.bucket[place + 1];
            const bool low = (drawn & ((1ull << shift) - 1)) < at.bucket[place];
            const int outcome = (int)(low ? pair & 0xFFFFFFFFull : pair >> 32);
            if (phantom) {
                at.hits[outcome + h * job.slot_shift][me]++;
                update(job, at, me, cell, action, 0.0);
                break;
            }
            s = at.next_state[outcome];
            update(job, at, me, cell, action, at.value[(h + 1) * STATES + s][me]);
        }
    }
    job.position[run] = read;
    store(job, at, run, me);
}

#ifdef __CUDACC__

__global__ void advance_all(Job job, long long episodes, bool fresh) {
    extern __shared__ char memory[];
    Block &at = *reinterpret_cast<Block *>(memory);
    for (int i = threadIdx.x; i < ROWS; i += THREADS) at.row[i] = job.row[i];
    for (int i = threadIdx.x; i < 2 * BUCKETS; i += THREADS) at.bucket[i] = job.bucket[i];
    for (int i = threadIdx.x; i < job.n_next; i += THREADS) at.next_state[i] = job.next_state[i];
    __syncthreads();
    const long long run = (long long)blockIdx.x * THREADS + threadIdx.x;
    if (run < job.runs) advance(job, at, run, threadIdx.x, episodes, fresh);
}

int launch(const Job &job, long long episodes, bool fresh) {
    cudaFuncSetAttribute(advance_all, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)sizeof(Block));
    advance_all<<<(job.runs + THREADS - 1) / THREADS, THREADS, sizeof(Block)>>>(job, episodes, fresh);
    return (int)cudaDeviceSynchronize();
}

template <typename T> T *there(const T *here, long long n) {
    T *out = nullptr;
    if (cudaMalloc(&out, n * sizeof(T)) == cudaSuccess) cudaMemcpy(out, here, n * sizeof(T), cudaMemcpyHostToDevice);
    return out;
}

template <typename T> void back(T *here, const T *out, long long n) {
    cudaMemcpy(here, out, n * sizeof(T), cudaMemcpyDeviceToHost);
}

void drop(const void *out) { cudaFree((void *)out); }

#else

int launch(const Job &job, long long episodes, bool fresh) {
    Block *at = new Block;
    std::memcpy(at->row, job.row, sizeof(at->row));
    std::memcpy(at->bucket, job.bucket, sizeof(at->bucket));
    std::memcpy(at->next_state, job.next_state, job.n_next * sizeof(int));
    for (long long run = 0; run < job.runs; run++) advance(job, *at, run, 0, episodes, fresh);
    delete at;
    return 0;
}

template <typename T> T *there(const T *here, long long n) {
    T *out = (T *)std::malloc(n * sizeof(T));
    std::memcpy(out, here, n * sizeof(T));
    return out;
}

template <typename T> void back(T *here, const T *out, long long n) { std::memcpy(here, out, n * sizeof(T)); }

void drop(const void *out) { std::free((void *)out); }

#endif

}  // namespace

extern "C" int play(int runs, word key, double scale, long long episodes, long long slice, int start, int row_shift,
                    int slot_shift, int n_next, const word *row, const word *bucket, const int *next_state, double *q,
                    double *value, uint32_t *visits, long long *position, word *hits, void (*tell)(long long)) {
    const long long cells = (long long)runs * CELLS;
    Job job = {runs, start, row_shift, slot_shift, n_next, key, scale, there(row, ROWS), there(bucket, 2 * BUCKETS),
               there(next_state, n_next), there(q, cells * WIDTH), there(value, cells), there(visits, cells * WIDTH),
               there(position, runs), there(hits, SLOTS)};
    int error = 0;
    for (long long done = 0; done < episodes && error == 0; done += slice) {
        const long long now = slice < episodes - done ? slice : episodes - done;
        error = launch(job, now, done == 0);
        tell(done + now);
    }
    back(value, job.value, cells);
    back(visits, job.visits, cells * WIDTH);
    back(position, job.position, runs);
    back(hits, job.hits, SLOTS);
    for (const void *one : {(const void *)job.row, (const void *)job.bucket, (const void *)job.next_state,
                            (const void *)job.q, (const void *)job.value, (const void *)job.visits,
                            (const void *)job.position, (const void *)job.hits})
        drop(one);
    return error;
}
