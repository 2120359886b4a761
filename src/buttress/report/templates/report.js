(function () {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const percent = (share) => (100 * share).toFixed(1) + " %";

  if (data.coverage) {
    const { n, accepted, errors, thresholds, geometry } = data.coverage;
    const slider = byId("cost");

    // The level of the smallest total cost; of equal ones the one that answers most.
    const bestLevel = (d) => {
      let best = 0, lowest = Infinity;
      for (let i = 0; i < accepted.length; i++) {
        const cost = errors[i] + d * (n - accepted[i]);
        if (cost <= lowest + 1e-9) { lowest = Math.min(cost, lowest); best = i; }
      }
      return best;
    };

    const update = () => {
      const d = Number(slider.value);
      const level = bestLevel(d);
      const rejected = n - accepted[level];
      const share = accepted[level] / n;
      const accuracy = accepted[level] ? 1 - errors[level] / accepted[level] : NaN;
      const cost = (errors[level] + d * rejected) / n;
      byId("cost-value").textContent = d.toFixed(2);
      byId("n-rejected").textContent = rejected + " of " + n;
      byId("accuracy").textContent = Number.isNaN(accuracy) ? "–" : percent(accuracy);
      byId("n-wrong").textContent = String(errors[level]);
      byId("risk").textContent = cost.toFixed(4);
      const all = errors[errors.length - 1];
      byId("coverage-sentence").textContent = rejected === 0
        ? "At this cost every row is answered: " + all + " of " + n + " answers are wrong."
        : "At this cost " + percent(1 - share) + " of the rows get no answer, and " +
          errors[level] + " instead of " + all + " answers are wrong.";
      const x = geometry.left + share * (geometry.right - geometry.left);
      const risk = accepted[level] ? errors[level] / accepted[level] : 0;
      const y = geometry.bottom - risk / geometry.highest * (geometry.bottom - geometry.top);
      const mark = byId("coverage-mark"), rule = byId("coverage-rule");
      mark.setAttribute("cx", x); mark.setAttribute("cy", y);
      rule.setAttribute("x1", x); rule.setAttribute("x2", x);
      rule.setAttribute("y1", geometry.top); rule.setAttribute("y2", geometry.bottom);
      const threshold = thresholds[level] === null ? Infinity : thresholds[level];
      for (const point of document.querySelectorAll("[data-confidence]")) {
        // Confidences are written with six digits; the margin is for their rounding.
        const confidence = Number(point.dataset.confidence);
        point.classList.toggle("unanswered", confidence < threshold - 1e-5 * Math.abs(threshold));
      }
    };
    slider.addEventListener("input", update);
    update();
  }

  const table = byId("suspect-table");
  if (data.suspects && table) {
    const body = table.tBodies[0];
    const rows = Array.from(body.rows, (element, index) => ({ element, cells: data.suspects.rows[index] }));
    const shown = () => rows.filter((row) => !row.element.hidden);
    const count = () => { byId("shown").textContent = shown().length + " of " + rows.length + " shown"; };

    const compare = (a, b) => typeof a === "number" && typeof b === "number"
      ? a - b
      : String(a).localeCompare(String(b), undefined, { numeric: true });
    for (const button of table.querySelectorAll("button.sort")) {
      button.addEventListener("click", () => {
        const header = button.closest("th");
        const descending = header.getAttribute("aria-sort") === "ascending";
        for (const other of table.querySelectorAll("th")) other.setAttribute("aria-sort", "none");
        header.setAttribute("aria-sort", descending ? "descending" : "ascending");
        const column = Number(button.dataset.column);
        rows.sort((a, b) => (descending ? -1 : 1) * compare(a.cells[column], b.cells[column]));
        body.append(...rows.map((row) => row.element));
      });
    }

    byId("filter").addEventListener("input", (event) => {
      const wanted = event.target.value.trim().toLowerCase();
      for (const row of rows) {
        row.element.hidden = !row.element.textContent.toLowerCase().includes(wanted) &&
          !row.cells.some((cell) => String(cell).toLowerCase().includes(wanted));
      }
      count();
    });

    const field = (value) => {
      let text = String(value);
      // a spreadsheet would run it as a formula
      if (/^[=+\-@\t\r]/.test(text) && !Number.isFinite(Number(text))) text = "'" + text;
      return /[",\n\r]/.test(text) ? '"' + text.replaceAll('"', '""') + '"' : text;
    };
    const csv = () => [data.suspects.columns, ...shown().map((row) => row.cells)]
      .map((cells) => cells.map(field).join(",")).join("\n") + "\n";
    byId("download").addEventListener("click", () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([csv()], { type: "text/csv" }));
      link.download = "suspects.csv";
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    });
    count();
  }
})();
