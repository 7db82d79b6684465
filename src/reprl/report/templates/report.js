"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");
  const all = (selector, from = document) => [...from.querySelectorAll(selector)];
  const data = JSON.parse(document.getElementById("cells").textContent);
  const tip = document.getElementById("tip");

  const hide = () => { tip.hidden = true; all(".cursor").forEach((mark) => mark.remove()); };
  const show = (text, x, y) => {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, x + 16), root.clientWidth - box.width - 8);
    const top = y + 18 + box.height > root.clientHeight ? y - box.height - 14 : y + 18;
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${Math.max(8, top)}px`;
  };

  // A cell is (i, j): the i-th drawn step and the j-th drawn state. Each raster shows it at one row and column, or not;
  // one that is the same at every step shows each state once.
  const size = (raster) => [Number(raster.dataset.rows), Number(raster.dataset.columns)];
  const cellAt = (raster, row, column) => {
    if (data.columns) return [Number(raster.dataset.step), row * data.columns + column];
    return data.down ? [row, column] : [column, row];
  };
  const placeOf = (raster, step, j) => {
    const i = "every" in raster.dataset ? 0 : step;
    if (data.columns) {
      return Number(raster.dataset.step) === i ? [Math.floor(j / data.columns), j % data.columns] : null;
    }
    return data.down ? [i, j] : [j, i];
  };
  const known = (i, j) => i >= 0 && j >= 0 && i < data.steps.length && j < data.states.length;
  const shown = (table, value) =>
    table.names.length ? table.names[value] ?? value : Number(value).toLocaleString("en", { maximumSignificantDigits: 12 });
  const describe = (i, j) => {
    const lines = data.tables.map((table) => `${table.label}: ${shown(table, table.values[i][j])}`);
    return [`step ${data.steps[i]} · ${data.states[j]}`, ...lines].join("\n");
  };
  const point = (i, j, x, y) => {
    all(".cursor").forEach((mark) => mark.remove());
    for (const raster of all(".raster")) {
      const place = placeOf(raster, i, j);
      if (!place) continue;
      const [rows, columns] = size(raster);
      const mark = document.createElement("div");
      mark.className = "cursor";
      mark.style.top = `${(100 * place[0]) / rows}%`;
      mark.style.left = `${(100 * place[1]) / columns}%`;
      mark.style.height = `max(6px, ${100 / rows}%)`;
      mark.style.width = `max(6px, ${100 / columns}%)`;
      raster.append(mark);
    }
    show(describe(i, j), x, y);
  };

  for (const raster of all(".raster")) {
    const [rows, columns] = size(raster);
    const at = (event) => {
      const box = raster.getBoundingClientRect();
      const row = Math.min(rows - 1, Math.floor(((event.clientY - box.top) / box.height) * rows));
      const column = Math.min(columns - 1, Math.floor(((event.clientX - box.left) / box.width) * columns));
      const [i, j] = cellAt(raster, row, column);
      if (known(i, j)) point(i, j, event.clientX, event.clientY);
      else hide();
    };
    raster.addEventListener("pointermove", at);
    raster.addEventListener("pointerdown", at);
    raster.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") hide(); });
    let here = [0, 0];
    raster.addEventListener("keydown", (event) => {
      const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
      if (!move) return;
      event.preventDefault();
      const next = [here[0] + move[0], here[1] + move[1]];
      const inside = next[0] >= 0 && next[1] >= 0 && next[0] < rows && next[1] < columns;
      if (inside && known(...cellAt(raster, ...next))) here = next;
      const box = raster.getBoundingClientRect();
      point(...cellAt(raster, ...here), box.left + (box.width * (here[1] + 1)) / columns, box.top + (box.height * (here[0] + 0.5)) / rows);
    });
    raster.addEventListener("blur", hide);
  }

  for (const element of all("[data-tip]")) {
    const say = (event) => {
      const box = element.getBoundingClientRect();
      const far = event.clientX === undefined;
      show(element.dataset.tip, far ? box.left + box.width / 2 : event.clientX, far ? box.bottom - 8 : event.clientY);
    };
    for (const name of ["pointermove", "pointerdown", "focus"]) element.addEventListener(name, say);
    for (const name of ["pointerleave", "blur"]) element.addEventListener(name, hide);
  }
  for (const box of all(".curves")) {
    const mark = (series) => {
      box.classList.toggle("focus", series !== undefined);
      for (const part of all("[data-series]", box)) part.classList.toggle("own", part.dataset.series === series);
    };
    for (const part of all(".key, .dot", box)) {
      if (part.dataset.series === undefined) continue;
      for (const name of ["pointerenter", "focus"]) part.addEventListener(name, () => mark(part.dataset.series));
      for (const name of ["pointerleave", "blur"]) part.addEventListener(name, () => mark());
    }
  }
  document.addEventListener("pointerdown", (event) => { if (!event.target.closest(".raster, [data-tip]")) hide(); });
  document.addEventListener("scroll", hide, { passive: true });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });

  for (const button of all("[data-copy]")) {
    button.addEventListener("click", async () => {
      const label = button.textContent;
      try {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = "Copied";
      } catch {
        const range = document.createRange();
        range.selectNodeContents(button.parentElement.querySelector(".whole"));
        getSelection().removeAllRanges();
        getSelection().addRange(range);
        button.textContent = "Selected: press Ctrl+C";
      }
      setTimeout(() => { button.textContent = label; }, 1600);
    });
  }

  for (const box of all("[data-search]")) {
    const rows = all("tbody tr", document.getElementById(box.dataset.search));
    const words = rows.map((row) => row.textContent.toLowerCase());
    const found = box.parentElement.querySelector(".found");
    const look = () => {
      const wanted = box.value.toLowerCase().trim();
      let count = 0;
      rows.forEach((row, i) => { row.hidden = !words[i].includes(wanted); count += row.hidden ? 0 : 1; });
      found.textContent = `${count.toLocaleString("en")} of ${rows.length.toLocaleString("en")}`;
    };
    box.addEventListener("input", look);
    look();
  }

  for (const group of all(".layers")) {
    const tabs = all(".tabs button", group);
    const choose = (layer) => {
      for (const tab of tabs) tab.setAttribute("aria-pressed", String(tab.dataset.layer === layer));
      for (const part of all(".layer", group)) part.hidden = part.dataset.layer !== layer;
    };
    for (const tab of tabs) tab.addEventListener("click", () => choose(tab.dataset.layer));
    choose("0");
  }

  const slider = document.getElementById("step");
  if (slider) {
    const move = () => {
      document.getElementById("step-shown").textContent = data.steps[slider.value];
      for (const panel of all(".sliding .panel")) panel.hidden = panel.dataset.step !== slider.value;
    };
    slider.addEventListener("input", move);
    move();
  }
})();
