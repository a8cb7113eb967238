// Script of the query page: it runs GraphQL queries as the signed-in caller, and shows the schema.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const page = document.getElementById("query-page");
  const byId = (id) => document.getElementById(id);
  const [query, variables, run, state, errors, result] = ["query", "variables", "run", "state", "errors", "result"].map(byId);
  const first = {query: query.value, variables: variables.value};
  // Longer results are cut: a browser takes minutes to lay them out.
  const maxShown = 500_000;

  const element = (name, attributes, ...children) => {
    const e = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
    e.append(...children);
    return e;
  };
  const button = (className, label, text, click) => {
    const b = element("button", {type: "button", class: className}, text);
    if (label) b.setAttribute("aria-label", label);
    b.addEventListener("click", click);
    return b;
  };

  // Requests. The cookie of the console names the caller.
  const send = async (body, signal) => {
    const response = await fetch(page.dataset.endpoint, {
      method: "POST", credentials: "same-origin", signal, body: JSON.stringify(body),
      headers: {"Content-Type": "application/json", Accept: "application/json"},
    });
    const text = await response.text();
    let json = null;
    try { json = JSON.parse(text); } catch { /* such as the page of a proxy */ }
    return {status: response.status, text, json};
  };

  // indented lays JSON out without parsing its numbers, which may have more digits than JavaScript's.
  const indented = (text) => {
    let out = "", depth = 0, last = "";
    for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[{}[\]:,]|[^\s{}[\]:,"]+/g)) {
      const line = () => { out += "\n" + "  ".repeat(depth); };
      if (token === "}" || token === "]") {
        depth--;
        if (last !== "{" && last !== "[") line();
      } else if (last === "{" || last === "[" || last === ",") {
        line();
      }
      out += token === ":" ? ": " : token;
      if (token === "{" || token === "[") depth++;
      last = token;
    }
    return out;
  };

  // The operation to run of several: the one in which the cursor is.
  const operationName = () => {
    const all = [...query.value.matchAll(/^[ \t]*(?:query|mutation)\s+([A-Za-z_]\w*)/gm)];
    if (all.length < 2) return undefined;
    return (all.findLast((m) => m.index <= query.selectionStart) ?? all[0])[1];
  };

  const request = () => {
    const body = {query: query.value};
    const given = variables.value.trim();
    if (given) {
      let parsed;
      try { parsed = JSON.parse(given); } catch (e) { throw new Error("The variables are not JSON: " + e.message); }
      if (parsed === null || typeof parsed !== "object" || Array.isArray(parsed)) throw new Error("The variables must be a JSON object, such as {\"filters\": {}}.");
      body.variables = parsed;
    }
    const name = operationName();
    if (name) body.operationName = name;
    return body;
  };

  const showErrors = (list) => {
    errors.hidden = list.length === 0;
    errors.replaceChildren(...list.map((e) => element("p", {class: "break"}, e)));
  };

  // What the errors of a response say, with their lines in the query.
  const errorsOf = ({status, json}) => {
    if (json && Array.isArray(json.errors)) {
      return json.errors.map((e) => {
        const at = (e.locations ?? []).map((l) => `line ${l.line}, column ${l.column}`).join("; ");
        const path = e.path ? ` (at ${e.path.join(".")})` : "";
        return (at ? at + ": " : "") + e.message + path;
      });
    }
    if (status < 400) return json ? [] : ["The response is not JSON: a proxy may have replaced it."];
    const said = json?.detail ? [json.detail, json.hint].filter(Boolean) : [json?.error?.message ?? "The server answers with status " + status + "."];
    if (status === 401) {
      const where = new URLSearchParams({next: location.pathname});
      said.push(element("a", {href: page.dataset.signIn + "?" + where}, "Sign in"));
    }
    return said;
  };

  let running = null;
  const execute = async () => {
    if (running) return running.abort();
    let body;
    try { body = request(); } catch (e) {
      state.textContent = "The query was not sent.";
      showErrors([e.message]);
      return;
    }
    remember();
    running = new AbortController();
    run.textContent = "Stop";
    state.textContent = "Running…";
    showErrors([]);
    const began = performance.now();
    try {
      const response = await send(body, running.signal);
      const took = Math.round(performance.now() - began);
      const shown = indented(response.json ? response.text : "");
      const found = errorsOf(response);
      result.textContent = shown.length > maxShown ? shown.slice(0, maxShown) + "\n…" : shown;
      state.textContent = (found.length ? "Finished with errors" : "Finished") + ` in ${took} ms, ${response.text.length.toLocaleString("en")} characters` +
        (shown.length > maxShown ? `. Only the first ${maxShown.toLocaleString("en")} are shown: ask for fewer documents or fields.` : ".");
      showErrors(found);
    } catch (e) {
      const stopped = e.name === "AbortError";
      state.textContent = stopped ? "Stopped." : "There is no response.";
      showErrors(stopped ? [] : ["The server cannot be reached. Try again when it answers."]);
    } finally {
      running = null;
      run.textContent = "Run";
      byId("result-card").scrollIntoView({block: "nearest"});
    }
  };
  run.addEventListener("click", execute);

  // Editing.
  const insert = (area, text, back = 0) => {
    area.focus();
    if (!document.execCommand("insertText", false, text)) area.setRangeText(text, area.selectionStart, area.selectionEnd, "end"); // the first one can be undone
    const at = area.selectionStart - back;
    area.setSelectionRange(at, at);
    changed();
  };
  const margin = (area) => area.value.slice(area.value.lastIndexOf("\n", area.selectionStart - 1) + 1).match(/^ */)[0];
  const edit = (area) => {
    let leaving = false;
    area.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
        event.preventDefault();
        execute();
      } else if (event.key === "Tab" && !event.shiftKey && !leaving) {
        event.preventDefault();
        insert(area, "  ");
      }
      leaving = event.key === "Escape" || (leaving && event.key === "Shift");
    });
    // A new line begins where the last one did, and further in after an opening brace.
    let inserting = false;
    area.addEventListener("beforeinput", (event) => {
      if (inserting || event.inputType !== "insertLineBreak") return;
      event.preventDefault();
      inserting = true;
      const opens = /[{([]\s*$/.test(area.value.slice(0, area.selectionStart));
      insert(area, "\n" + margin(area) + (opens ? "  " : ""));
      inserting = false;
    });
    area.addEventListener("input", () => changed());
  };
  [query, variables].forEach(edit);

  // The same query as a command.
  const changed = () => {
    let body = null;
    try { body = request(); } catch { /* said when it is run */ }
    byId("the-curl").textContent = body ? page.dataset.command + "'" + JSON.stringify(body).replaceAll("'", "'\\''") + "'" : "The variables are not a JSON object.";
  };

  const load = (entry) => {
    query.value = entry.query;
    variables.value = entry.variables;
    changed();
    query.focus();
  };
  byId("example").addEventListener("click", () => load(first));

  // The history of this catalogue, in the browser.
  const key = "tutti.queries." + page.dataset.endpoint;
  const maxHistory = 30;
  const read = () => {
    try { return JSON.parse(localStorage.getItem(key) ?? "[]").filter((e) => typeof e.query === "string" && typeof e.variables === "string"); } catch { return []; }
  };
  const write = (list) => {
    try { localStorage.setItem(key, JSON.stringify(list)); } catch { /* full, or not permitted */ }
    showHistory();
  };
  const remember = () => {
    const entry = {query: query.value, variables: variables.value, at: new Date().toISOString()};
    write([entry, ...read().filter((e) => e.query !== entry.query || e.variables !== entry.variables)].slice(0, maxHistory));
  };
  const showHistory = () => {
    const list = read();
    byId("history-list").replaceChildren(...list.map((e) => {
      const summary = e.query.replace(/#.*/g, "").replace(/\s+/g, " ").trim().slice(0, 120);
      return element("li", {}, button("tiny", "", `${String(e.at).slice(0, 16).replace("T", " ")} ${summary}`, () => load(e)));
    }));
    byId("history-empty").hidden = list.length > 0;
    byId("history-clear").hidden = list.length === 0;
  };
  byId("history-clear").addEventListener("click", () => write([]));

  // The schema.
  const typeShape = "kind name ofType{kind name ofType{kind name ofType{kind name}}}";
  const values = `name description type{${typeShape}}`;
  const introspection = `{__schema{queryType{name} mutationType{name} types{kind name description ` +
    `fields{${values} args{${values} defaultValue}} inputFields{${values} defaultValue} enumValues{name description}}}}`;
  const schema = byId("schema");
  let types = new Map();
  let visited = [];
  const named = (t) => (t.ofType ? named(t.ofType) : t);
  const written = (t) => (t.kind === "NON_NULL" ? written(t.ofType) + "!" : t.kind === "LIST" ? `[${written(t.ofType)}]` : t.name);
  const composite = (t) => ["OBJECT", "INTERFACE", "UNION"].includes(t.kind);

  const typeLink = (t) => button("type", `Show the type ${named(t).name}`, written(t), () => open(named(t).name));
  const describe = (text) => (text ? [element("p", {class: "small muted"}, text)] : []);
  const argument = (a) => element("li", {},
    element("div", {class: "row"}, button("tiny", `Insert the argument ${a.name}`, a.name, () => insertName(a.name + ": ")), typeLink(a.type),
      ...(a.defaultValue == null ? [] : [element("span", {class: "small muted"}, "= " + a.defaultValue)])),
    ...describe(a.description));
  const field = (f) => {
    const opens = composite(named(f.type));
    const li = element("li", {},
      element("div", {class: "row"}, button("tiny", `Insert the field ${f.name}`, f.name, () => insertName(f.name, opens)), typeLink(f.type)),
      ...describe(f.description));
    if (f.args?.length) {
      li.append(element("details", {}, element("summary", {}, f.args.length === 1 ? "1 argument" : f.args.length + " arguments"),
        element("ul", {class: "plainlist"}, ...f.args.map(argument))));
    }
    return li;
  };

  // insertName inserts a name at the cursor; opens adds the braces of a selection and puts the cursor between them.
  const insertName = (name, opens = false) => {
    const before = query.value.slice(0, query.selectionStart);
    const space = before && !/[\s{(]$/.test(before) ? " " : "";
    const line = "\n" + margin(query);
    if (opens) insert(query, `${space}${name} {${line}  ${line}}`, line.length + 1);
    else insert(query, space + name);
  };

  const show = () => {
    byId("schema-path").replaceChildren(...visited.slice(0, -1).map((name, i) => button("tiny", `Back to ${name}`, name, () => {
      visited = visited.slice(0, i + 1);
      show();
    })));
    const t = types.get(visited.at(-1));
    const members = (t.fields ?? t.inputFields ?? []).map(t.inputFields ? argument : field);
    const options = (t.enumValues ?? []).map((v) => element("li", {}, button("tiny", `Insert the value ${v.name}`, v.name, () => insertName(v.name)), ...describe(v.description)));
    schema.replaceChildren(element("h3", {tabindex: "-1"}, t.name), ...describe(t.description), element("ul", {class: "plainlist"}, ...members, ...options));
  };
  const open = (name) => {
    if (!types.has(name)) return;
    byId("schema-search").value = "";
    const at = visited.indexOf(name);
    visited = at >= 0 ? visited.slice(0, at + 1) : [...visited, name];
    show();
    schema.querySelector("h3").focus();
  };

  const maxFound = 50;
  const search = () => {
    const wanted = byId("schema-search").value.trim().toLowerCase();
    if (!types.size) return;
    if (!wanted) return show();
    const has = (x) => x.name.toLowerCase().includes(wanted) || (x.description ?? "").toLowerCase().includes(wanted);
    const found = [];
    for (const t of types.values()) {
      if (has(t)) found.push([t, t.name, t.description]);
      for (const f of t.fields ?? t.inputFields ?? t.enumValues ?? []) if (has(f)) found.push([t, t.name + "." + f.name, f.description]);
    }
    byId("schema-path").replaceChildren();
    schema.replaceChildren(
      element("p", {role: "status", class: "small muted"}, found.length === 0 ? "Nothing in the schema matches." : `${found.length} found` + (found.length > maxFound ? `, the first ${maxFound}:` : ":")),
      element("ul", {class: "plainlist"}, ...found.slice(0, maxFound).map(([t, text, description]) =>
        element("li", {}, button("type", `Show ${text}`, text, () => open(t.name)), ...describe(description)))));
  };
  byId("schema-search").addEventListener("input", search);

  const loadSchema = async () => {
    try {
      const response = await send({query: introspection});
      const found = response.json?.data?.__schema;
      if (!found) {
        schema.replaceChildren(element("p", {}, "The schema cannot be shown:"), ...errorsOf(response).map((e) => element("p", {class: "break"}, e)));
        return;
      }
      types = new Map(found.types.filter((t) => !t.name.startsWith("__")).map((t) => [t.name, t]));
      visited = [found.queryType.name];
      search();
    } catch {
      schema.replaceChildren(element("p", {}, "The server cannot be reached, so the schema is not shown."), button("tiny", "", "Try again", loadSchema));
    }
  };

  showHistory();
  changed();
  loadSchema();
});
