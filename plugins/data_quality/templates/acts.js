// What a person does on these pages are requests to Airflow's own API, as whoever is logged in: it decides who may.
const dags = `${document.body.dataset.api}/dags/`;
const lookAgainMs = 2000;
const mostRuns = 50;
const done = "Done. Load the page again to see what is left.";
const notDone = "Not all of it was done by you: see what is said of each, and load the page again.";
const ended = ["success", "failed", "skipped", "upstream_failed", "removed"];

async function ask(method, path, body, triesLeft = 10) {
  const headers = { Accept: "application/json", "Content-Type": "application/json" };
  const answer = await fetch(dags + path, { method, headers, body: body && JSON.stringify(body) });
  const value = await answer.json().catch(() => ({}));
  if (answer.ok) return value;
  if (answer.status === 503 && triesLeft) { // its database is busy: nothing was done
    await new Promise((wake) => setTimeout(wake, 1000));
    return ask(method, path, body, triesLeft - 1);
  }
  const detail = typeof value.detail === "string" ? value.detail : value.detail?.reason ?? value.detail?.[0]?.msg;
  throw Object.assign(new Error(detail ?? `Airflow answers ${answer.status}`), { status: answer.status });
}

async function tasksOf(dag, runs, tasks) {
  const found = [];
  for (let first = 0; first < runs.length; first += mostRuns) {
    const wanted = { dag_ids: [dag], dag_run_ids: runs.slice(first, first + mostRuns), ...(tasks && { task_ids: tasks }) };
    for (let offset = 0, total = 1; offset < total; offset += 100) {
      const page = await ask("POST", "~/dagRuns/~/taskInstances/list", { ...wanted, page_offset: offset, page_limit: 100 });
      found.push(...page.task_instances);
      total = page.total_entries;
    }
  }
  return found;
}

// Ask for the tasks again and again, until `show` says for each run that it has ended.
async function follow(dag, places, tasks, show) {
  const open = new Set(places.keys());
  while (open.size) {
    await new Promise((wake) => setTimeout(wake, lookAgainMs));
    let found;
    try {
      found = await tasksOf(dag, [...open], tasks);
    } catch (error) {
      if (error.status && error.status < 500) throw error;
      continue; // Airflow is busy, or starts again
    }
    for (const run of [...open]) {
      const hasEnded = show(found.filter((task) => task.dag_run_id === run), places.get(run));
      if (hasEnded) open.delete(run);
    }
  }
}

const acts = {
  async answer(form, choice) {
    const { dag, task, reason } = form.dataset;
    const places = new Map();
    let isAllDone = true;
    for (const run of form.querySelectorAll("input[name=run]:checked, input[type=hidden][name=run]")) {
      places.set(run.value, run.closest("li, .decision").querySelector("output"));
    }
    if (!places.size) return "Nothing is chosen.";
    const body = { chosen_options: [choice], params_input: { [reason]: form.elements.reason.value.trim() } };
    for (const [run, place] of [...places]) {
      try {
        await ask("PATCH", `${dag}/dagRuns/${encodeURIComponent(run)}/taskInstances/ask/-1/hitlDetails`, body);
        place.textContent = "answered; it is being carried out";
      } catch (error) {
        isAllDone = false;
        place.textContent = error.status === 409 ? "somebody has answered already" : error.message;
        if (error.status !== 409) places.delete(run);
      }
    }
    await follow(dag, places, ["ask", task], (tasks, place) => {
      const last = tasks.find((each) => each.task_id === task);
      if (!last || !ended.includes(last.state)) return false;
      const label = tasks.map((each) => each.rendered_map_index).filter(Boolean).pop();
      place.textContent = last.rendered_map_index ?? label ?? last.state;
      place.dataset.state = last.state;
      isAllDone &&= last.state === "success";
      return true;
    });
    return isAllDone ? done : notDone;
  },

  async start(form, choice) {
    const { dag, choices } = form.dataset;
    const [suffix, more] = JSON.parse(choices)[choice];
    const reason = form.elements.reason.value.trim();
    const places = new Map();
    let waits = false;
    let isAllDone = true;
    for (const place of form.querySelectorAll("output[data-run]")) {
      const run = place.dataset.run + suffix;
      const body = { dag_run_id: run, logical_date: null, conf: { ...JSON.parse(place.dataset.conf), ...more, reason } };
      delete place.dataset.state;
      try {
        await ask("POST", `${dag}/dagRuns`, body);
        place.textContent = "started";
      } catch (error) {
        isAllDone = false;
        place.textContent = error.status === 409 ? "somebody has started it already" : error.message;
        if (error.status !== 409) continue;
      }
      places.set(run, place);
    }
    await follow(dag, places, null, (tasks, place) => {
      const states = {};
      for (const each of tasks) {
        const state = (each.state ?? "waiting").replaceAll("_", " ");
        const of = (states[each.task_id] ??= {});
        of[state] = (of[state] ?? 0) + 1;
      }
      const labels = tasks.filter((each) => each.map_index < 0 || each.state === "failed").map((each) => each.rendered_map_index);
      place.textContent = Object.entries(states)
        .map(([task, of]) => `${task}: ${Object.entries(of).map(([state, count]) => (count > 1 ? `${count} ${state}` : state)).join(", ")}`)
        .concat(labels.filter(Boolean))
        .join(" · ");
      const isOver = tasks.length && tasks.every((each) => ended.includes(each.state));
      const isAsked = tasks.some((each) => each.state === "awaiting_input");
      waits ||= isAsked;
      if (isOver) place.dataset.state = tasks.some((each) => each.state === "failed") ? "failed" : "success";
      isAllDone &&= place.dataset.state !== "failed";
      return isOver || isAsked;
    });
    if (!isAllDone) return notDone;
    return waits ? "It waits for a decision: see Backfills." : done;
  },
};

for (const form of document.querySelectorAll("form.act")) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const status = form.querySelector("[role=status]");
    const fields = form.querySelector("fieldset");
    if (fields.disabled) return; // a second click
    const choice = event.submitter?.value;
    fields.disabled = true;
    status.textContent = "Asking Airflow…";
    try {
      status.textContent = await acts[form.dataset.act](form, choice);
    } catch (error) {
      status.textContent = error.message;
    }
    // What was answered is over; after a preview one goes on.
    if (status.textContent !== done || form.dataset.act === "start") fields.disabled = false;
  });
}
