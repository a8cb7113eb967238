package app_test

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// typeOf returns the registration of an analysis type with more members of the schema and of the registration, such as
// `,"a":1`.
func typeOf(name, schema, more string) string {
	return fmt.Sprintf(`{"name":%q,"schema":{"type":"object","required":["experiment"],"properties":{"experiment":{"type":"object"}}%s}%s}`,
		name, schema, more)
}

// leaked matches what no answer may contain: stack traces, format verbs, and text of the database.
var leaked = regexp.MustCompile(`goroutine \d|\.go:\d|runtime\.|panic|%!|%[sdvq]|0x[0-9a-f]{6,}|<nil>|SQLITE|sqlite|pgx|\*core\.`)

// refusal is a request that must be refused, and how.
type refusal struct {
	name, method, path, body string
	status                   int
	errorID                  string
	// says is in the message, and pointer, where it is given, one of those of the violations.
	says, pointer string
}

// check sends it and compares the answer.
func (r refusal) check(t *testing.T, b *builtIn) {
	t.Helper()
	a, err := b.send(r.method, r.path, r.body)
	if err != nil {
		t.Fatal(err)
	}
	if a.status != r.status || a.get("errorId").String() != r.errorID || a.get("status").Int() != int64(r.status) ||
		a.get("httpStatusCode").Int() != int64(r.status) {
		t.Errorf("status %d, errorId %q, want %d, %q: %.1000s", a.status, a.get("errorId"), r.status, r.errorID, a.raw)
	}
	message := a.get("message").String()
	if !strings.Contains(message, r.says) || message != a.get("detail").String() {
		t.Errorf("the message %q does not say %q: %.1000s", message, r.says, a.raw)
	}
	if r.pointer != "" && !strings.Contains(a.get("violations.#.pointer").Raw, `"`+r.pointer+`"`) {
		t.Errorf("no violation at %s: %.1000s", r.pointer, a.raw)
	}
	if found := leaked.FindString(string(a.raw)); found != "" {
		t.Errorf("the answer holds %q: %.1000s", found, a.raw)
	}
	if ct := a.header.Get("Content-Type"); ct != "application/problem+json" {
		t.Errorf("content type %q", ct)
	}
	if len(a.raw) > 64<<10 {
		t.Errorf("the answer has %d bytes", len(a.raw))
	}
}

// deep returns arrays in arrays.
func deep(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

// registrations are bodies of POST /schemas that are no registration.
func registrations() []refusal {
	const parameter, schema, name, meta = "malformed.parameter", "malformed.json.schema", "illegal.analysis.type.name", "schema.violation"
	list := []refusal{
		{name: "no body", body: "", errorID: parameter, says: "empty"},
		{name: "not JSON", body: `{"name":`, errorID: parameter, says: "not JSON"},
		{name: "two values", body: `{} {}`, errorID: parameter, says: "not JSON"},
		{name: "not UTF-8", body: "{\"name\":\"\xff\"}", errorID: parameter, says: "UTF-8"},
		{name: "an array", body: `[]`, errorID: parameter, says: "must be an object"},
		{name: "null", body: `null`, errorID: parameter, says: "must be an object"},
		{name: "nothing in it", body: `{}`, errorID: parameter, says: "name"},
		{name: "no name", body: strings.Replace(typeOf("x", "", ""), `"name":"x",`, "", 1), errorID: parameter, says: "name"},
		{name: "no schema", body: `{"name":"x"}`, errorID: meta, says: "schema"},
		{
			name: "a number for a name", body: strings.Replace(typeOf("x", "", ""), `"x"`, "5", 1),
			errorID: parameter, says: "string", pointer: "/name",
		},
		{name: "an empty name", body: typeOf("", "", ""), errorID: parameter, says: "/name", pointer: "/name"},
		{name: "a name with a space", body: typeOf("a b", "", ""), errorID: parameter, says: "/name", pointer: "/name"},
		{name: "a name with a slash", body: typeOf("a/b", "", ""), errorID: parameter, says: "/name", pointer: "/name"},
		{name: "a name of two points", body: typeOf("..", "", ""), errorID: name, says: "/name", pointer: "/name"},
		{name: "the reserved name", body: typeOf("registration", "", ""), errorID: name, says: "/name", pointer: "/name"},
		{name: "a format as the name", body: typeOf("%s", "", ""), errorID: parameter, says: "/name", pointer: "/name"},
		{name: "an array for a schema", body: `{"name":"x","schema":[]}`, errorID: meta, says: "/schema", pointer: "/schema"},
		{
			name: "a boolean for a schema", body: `{"name":"x","schema":true}`,
			errorID: meta, says: "/schema", pointer: "/schema",
		},
		{name: "a text for a schema", body: `{"name":"x","schema":"{}"}`, errorID: meta, says: "/schema", pointer: "/schema"},
		{name: "null for a schema", body: `{"name":"x","schema":null}`, errorID: meta, says: "/schema", pointer: "/schema"},
		{name: "an empty schema", body: `{"name":"x","schema":{}}`, errorID: meta, says: "/schema"},
		{
			name: "a schema without experiment", body: `{"name":"x","schema":{"type":"object","required":[],"properties":{}}}`,
			errorID: meta, says: "experiment",
		},
		{
			name: "a schema of an array", body: strings.Replace(typeOf("x", "", ""), `"type":"object"`, `"type":"array"`, 1),
			errorID: meta, says: "/schema/type", pointer: "/schema/type",
		},
		{
			name: "a redefined file list", body: strings.Replace(typeOf("x", "", ""), `{"experiment"`, `{"files":{},"experiment"`, 1),
			errorID: meta, says: "redefined", pointer: "/schema/properties/files",
		},
		{
			name: "an unknown type", body: typeOf("x", `,"items":{"type":"strnig"}`, ""),
			errorID: schema, says: "/schema/items/type", pointer: "/schema/items/type",
		},
		{
			name: "a bad expression", body: typeOf("x", `,"patternProperties":{"[":{}}`, ""),
			errorID: schema, says: "regular expression",
		},
		{
			name: "a bad pattern", body: typeOf("x", `,"definitions":{"a":{"pattern":"(a"}}`, ""),
			errorID: schema, says: "regular expression", pointer: "/schema/definitions/a/pattern",
		},
		{
			name: "a dangling reference", body: typeOf("x", `,"allOf":[{"$ref":"#/definitions/none"}]`, ""),
			errorID: schema, says: "#/definitions/none", pointer: "/schema/allOf/0/$ref",
		},
		{
			name: "a remote reference", body: typeOf("x", `,"allOf":[{"$ref":"http://127.0.0.1:1/a.json"}]`, ""),
			errorID: schema, says: "fetched", pointer: "/schema/allOf/0/$ref",
		},
		{
			name: "a file's reference", body: typeOf("x", `,"allOf":[{"$ref":"file:///etc/passwd"}]`, ""),
			errorID: schema, says: "fetched", pointer: "/schema/allOf/0/$ref",
		},
		{
			name: "an unknown draft", body: typeOf("x", `,"$schema":"http://example.org/schema"`, ""),
			errorID: schema, says: "$schema",
		},
		{
			name: "options of another type", body: typeOf("x", "", `,"options":[]`),
			errorID: parameter, says: "/options", pointer: "/options",
		},
		{
			name: "a text for file types", body: typeOf("x", "", `,"options":{"fileTypes":"BAM"}`),
			errorID: parameter, says: "/options/fileTypes", pointer: "/options/fileTypes",
		},
		{
			name: "numbers for file types", body: typeOf("x", "", `,"options":{"fileTypes":[1]}`),
			errorID: parameter, says: "/options/fileTypes/0", pointer: "/options/fileTypes/0",
		},
		{
			name: "a misspelt option", body: typeOf("x", "", `,"options":{"filetypes":[]}`),
			errorID: parameter, says: "filetypes",
		},
		{
			name: "an object for validations", body: typeOf("x", "", `,"options":{"externalValidations":{}}`),
			errorID: parameter, says: "/options/externalValidations", pointer: "/options/externalValidations",
		},
		{name: "deep", body: deep(10_000), errorID: parameter, says: "256"},
		{
			name: "a deep schema", body: typeOf("x", `,"definitions":{"a":`+strings.Repeat(`{"not":`, 10_000)+"{}"+strings.Repeat("}", 10_000)+"}", ""),
			errorID: parameter, says: "256",
		},
		{
			name: "large", body: `{"name":"` + strings.Repeat("x", 11<<20) + `"}`,
			status: http.StatusRequestEntityTooLarge, errorID: "payload.too.large", says: "10485760",
		},
	}
	for _, v := range []struct{ name, url, path, says, pointer string }{
		{"another token", "http://example.org/{donor}", "a", "{donor}", "/url"},
		{"an open brace", "http://example.org/{value", "a", "brace", "/url"},
		{"a token in the host", "http://{study}.example.org/", "a", "host", "/url"},
		{"a relative URL", "/ids/{value}", "a", "absolute", "/url"},
		{"no scheme", "example.org/{value}", "a", "absolute", "/url"},
		{"another scheme", "file:///etc/{value}", "a", "absolute", "/url"},
		{"a password", "http://u:p@example.org/{value}", "a", "password", "/url"},
		{"a bad path", "http://example.org/{value}", "a[", "", "/jsonPath"},
	} {
		list = append(list, refusal{
			name: "a validation with " + v.name, errorID: parameter, says: v.says, pointer: "/options/externalValidations/0" + v.pointer,
			body: typeOf("x", "", fmt.Sprintf(`,"options":{"externalValidations":[{"url":%q,"jsonPath":%q}]}`, v.url, v.path)),
		})
	}
	for i := range list {
		list[i].method, list[i].path = http.MethodPost, "/schemas"
		if list[i].status == 0 {
			list[i].status = http.StatusBadRequest
		}
	}
	return list
}

// questions are queries that cannot be answered.
func questions() []refusal {
	const parameter = "malformed.parameter"
	list := []refusal{
		{path: "/schemas?limit=many", says: "limit"},
		{path: "/schemas?limit=-1", says: "limit"},
		{path: "/schemas?limit=-1", says: "limit"},
		{path: "/schemas?limit=99999999999999999999", says: "limit"},
		{path: "/schemas?offset=-1", says: "offset"},
		{path: "/schemas?offset=x", says: "offset"},
		{path: "/schemas?versions=1,x", says: "versions"},
		{path: "/schemas?versions=-1", says: "versions"},
		{path: "/schemas?sort=date", says: "sort"},
		{path: "/schemas?sortOrder=up", says: "sortOrder"},
		{path: "/schemas?hideSchema=perhaps", says: "hideSchema"},
		{path: "/schemas?limit=5&limit=6", says: "limit"},
		{path: "/schemas?names=%zz", says: "query"},
		{path: "/schemas/plain?version=x", says: "version"},
		{path: "/schemas/plain?version=-1", says: "version"},
		{path: "/schemas/plain?version=0", says: "version"},
		{path: "/schemas/plain/versions/x", says: "version"},
		{path: "/schemas/plain/versions/-1", says: "version"},
		{path: "/schemas/plain?version=2", status: http.StatusNotFound, errorID: "analysis.type.not.found", says: "version 2"},
		{path: "/schemas/none", status: http.StatusNotFound, errorID: "analysis.type.not.found", says: "none"},
		{path: "/studies/S1/analysis/paginated?limit=x", says: "limit"},
		{path: "/studies/S1/analysis/paginated?limit=-5", says: "limit"},
		{path: "/studies/S1/analysis/paginated?offset=-5", says: "offset"},
		{path: "/studies/S1/analysis/paginated?offset=five", says: "offset"},
		{path: "/studies/S1/analysis?analysisStates=published", says: "analysisStates"},
		{path: "/studies/none/analysis", status: http.StatusNotFound, errorID: "study.id.does.not.exist", says: "study"},
		{path: "/studies/none", status: http.StatusNotFound, errorID: "study.id.does.not.exist", says: "study"},
		{path: "/studies/S1/analysis/none", status: http.StatusNotFound, errorID: "analysis.id.not.found", says: "none"},
		{path: "/studies/none/analysis/none", status: http.StatusNotFound, errorID: "study.id.does.not.exist", says: "study"},
		{path: "/studies/S1/analysis/a%00b", says: "control character"},
		{path: "/studies/S1/analysis/%ff", says: "UTF-8"},
		{path: "/studies/%2E%2E", says: "study"},
		{path: "/studies/" + strings.Repeat("x", 600), says: "512"},
	}
	for i := range list {
		l := &list[i]
		l.name, l.method = l.path[:min(len(l.path), 60)], http.MethodGet
		if l.status == 0 {
			l.status, l.errorID = http.StatusBadRequest, parameter
		}
	}
	return list
}

// submissions are bodies of POST /submit/S1 that are no analysis.
func submissions(b *builtIn) []refusal {
	const parsing, violation = "payload.parsing", "schema.violation"
	good := b.payload("S1", "")
	with := func(old, new string) string {
		if !strings.Contains(good, old) {
			b.t.Fatalf("%s does not hold %s", good, old)
		}
		return strings.Replace(good, old, new, 1)
	}
	file := regexp.MustCompile(`\{"dataType".*?\}`).FindString(good)
	list := []refusal{
		{name: "no body", body: "", errorID: parsing, says: "empty"},
		{name: "not JSON", body: `{"studyId":`, errorID: parsing, says: "not valid JSON"},
		{name: "an array", body: `[]`, errorID: parsing, says: "not a JSON object"},
		{name: "a text", body: `"S1"`, errorID: parsing, says: "not a JSON object"},
		{name: "not UTF-8", body: "{\"a\":\"\xff\"}", errorID: parsing, says: "UTF-8"},
		{name: "a member twice", body: with(`"files"`, `"studyId":"S1","files"`), errorID: parsing, says: "twice"},
		{name: "deep", body: `{"a":` + deep(10_000) + `}`, errorID: parsing, says: "256"},
		{name: "nothing in it", body: `{}`, errorID: violation, says: "studyId"},
		{name: "no type", body: with(`"analysisType":{"name":"plain"},`, ""), errorID: violation, says: "analysisType"},
		{
			name: "a text for a type", body: with(`{"name":"plain"}`, `"plain"`),
			errorID: violation, says: "/analysisType", pointer: "/analysisType",
		},
		{
			name: "an unknown type", body: with("plain", "none"),
			status: http.StatusNotFound, errorID: "analysis.type.not.found", says: "none",
		},
		{
			name: "an unknown version", body: with(`"plain"`, `"plain","version":7`),
			status: http.StatusNotFound, errorID: "analysis.type.not.found", says: "version 7",
		},
		{
			name: "a negative version", body: with(`"plain"`, `"plain","version":-1`),
			errorID: violation, says: "/analysisType/version",
		},
		{
			name: "a text for a version", body: with(`"plain"`, `"plain","version":"1"`),
			errorID: violation, says: "/analysisType/version",
		},
		{name: "no experiment", body: with(`"experiment"`, `"experimnet"`), errorID: violation, says: "experiment"},
		{
			name: "an array for an experiment", body: with(`{"number"`, `[],"b":{"number"`),
			errorID: violation, says: "/experiment", pointer: "/experiment",
		},
		{
			name: "another study", body: with(`"S1"`, `"S2"`),
			status: http.StatusConflict, errorID: "study.id.mismatch", says: "studyId",
		},
		{name: "no files", body: with(file, ""), errorID: violation, says: "/files", pointer: "/files"},
		{name: "a text for files", body: with("["+file+"]", `"none"`), errorID: violation, says: "/files", pointer: "/files"},
		{name: "texts for files", body: with(file, `"none"`), errorID: violation, says: "/files/0", pointer: "/files/0"},
		{
			name: "two files of one name", body: with(file, file+","+file),
			status: http.StatusConflict, errorID: "duplicate.file", says: "several files with the same name", pointer: "/files/1/fileName",
		},
		{
			name: "a negative size", body: with(`"fileSize":`, `"fileSize":-`),
			errorID: violation, says: "/files/0/fileSize", pointer: "/files/0/fileSize",
		},
		{
			name: "a text for a size", body: with(`"fileSize":`, `"fileSize":"x","y":`),
			errorID: violation, says: "/files/0/fileSize", pointer: "/files/0/fileSize",
		},
		{
			name: "no access", body: with(`"open"`, `"shut"`),
			errorID: violation, says: "/files/0/fileAccess", pointer: "/files/0/fileAccess",
		},
		{
			name: "no MD5 sum", body: with(`"fileMd5sum":"0`, `"fileMd5sum":"x`),
			errorID: violation, says: "/files/0/fileMd5sum", pointer: "/files/0/fileMd5sum",
		},
		{
			name: "large", body: with(`"number"`, `"text":"`+strings.Repeat("x", 11<<20)+`","number"`),
			status: http.StatusRequestEntityTooLarge, errorID: "payload.too.large", says: "10485760",
		},
	}
	for i := range list {
		l := &list[i]
		l.method, l.path = http.MethodPost, "/submit/S1"
		switch {
		case l.status != 0:
		case l.errorID == parsing:
			l.status = http.StatusUnprocessableEntity
		default:
			l.status = http.StatusBadRequest
		}
	}
	return list
}

// changes are changes of the analysis id of S1, unpublished, that cannot be made.
func changes(b *builtIn, id string) []refusal {
	none := analysisPath("S1", "none")
	good := b.payload("S1", "")
	return []refusal{
		{
			"submitting to no study", http.MethodPost, "/submit/none", b.payload("none", ""),
			http.StatusNotFound, "study.id.does.not.exist", "study", "",
		},
		{
			"publishing nothing", http.MethodPut, statePath("S1", "publish", "none"), "",
			http.StatusNotFound, "analysis.id.not.found", "analysis", "",
		},
		{
			"publishing of no study", http.MethodPut, statePath("none", "publish", id), "",
			http.StatusNotFound, "study.id.does.not.exist", "study", "",
		},
		{
			"publishing of another study", http.MethodPut, statePath("S2", "publish", id), "",
			http.StatusNotFound, "analysis.id.not.found", "analysis", "",
		},
		{
			"publishing with a body", http.MethodPut, statePath("S1", "publish", id), "[]",
			http.StatusBadRequest, "malformed.parameter", "object", "",
		},
		{"replacing nothing", http.MethodPut, none, good, http.StatusNotFound, "analysis.id.not.found", "analysis", ""},
		{
			"replacing with another id", http.MethodPut, analysisPath("S1", id), strings.Replace(good, "{", `{"analysisId":"other",`, 1),
			http.StatusBadRequest, "malformed.parameter", "analysisId", "",
		},
		{
			"replacing with another study", http.MethodPut, analysisPath("S1", id), b.payload("S2", ""),
			http.StatusConflict, "study.id.mismatch", "studyId", "",
		},
		{
			"replacing with nothing", http.MethodPut, analysisPath("S1", id), "{}",
			http.StatusBadRequest, "schema.violation", "analysisType", "",
		},
		{"merging nothing", http.MethodPatch, none, "{}", http.StatusNotFound, "analysis.id.not.found", "analysis", ""},
		{
			"merging an array", http.MethodPatch, analysisPath("S1", id), "[]",
			http.StatusUnprocessableEntity, "payload.parsing", "object", "",
		},
		{
			"merging a state", http.MethodPatch, analysisPath("S1", id), `{"analysisState":"PUBLISHED"}`,
			http.StatusBadRequest, "malformed.parameter", "state", "",
		},
		{
			"merging another study", http.MethodPatch, analysisPath("S1", id), `{"studyId":"S2"}`,
			http.StatusConflict, "study.id.mismatch", "studyId", "",
		},
		{
			"merging the experiment away", http.MethodPatch, analysisPath("S1", id), `{"experiment":null}`,
			http.StatusBadRequest, "schema.violation", "experiment", "",
		},
		{
			"merging a negative size", http.MethodPatch, analysisPath("S1", id), `{"files":[{"fileSize":-1}]}`,
			http.StatusBadRequest, "schema.violation", "/files/0", "/files/0/fileSize",
		},
		{"a study again", http.MethodPost, "/studies/S1", "", http.StatusConflict, "study.already.exists", "exists", ""},
		{
			"a study of a bad name", http.MethodPost, "/studies/a%20b", "",
			http.StatusBadRequest, "malformed.parameter", "id of a study", "",
		},
		{
			"a study of the system's name", http.MethodPost, "/studies/tutti", "",
			http.StatusBadRequest, "malformed.parameter", "system", "",
		},
		{"a study called all", http.MethodPost, "/studies/all", "", http.StatusBadRequest, "malformed.parameter", "all", ""},
		{
			"a study of another name", http.MethodPost, "/studies/S9", `{"studyId":"S8"}`,
			http.StatusConflict, "study.id.mismatch", "S8", "",
		},
		{
			"a study whose name is a number", http.MethodPost, "/studies/S9", `{"name":5}`,
			http.StatusBadRequest, "malformed.parameter", "name", "",
		},
		{
			"a study that is not JSON", http.MethodPost, "/studies/S9", `{`,
			http.StatusBadRequest, "malformed.parameter", "JSON", "",
		},
		{
			"a method that there is not", http.MethodDelete, analysisPath("S1", id), "",
			http.StatusMethodNotAllowed, "method.not.allowed", "method", "",
		},
		{"a path that there is not", http.MethodGet, "/studies/S1/nothing", "", http.StatusNotFound, "not.found", "", ""},
	}
}

// TestBuiltInRefuses: what cannot be done is refused with the status, the error id and the words that say what is wrong,
// nothing of the program's inside, and nothing changes.
func TestBuiltInRefuses(t *testing.T) {
	t.Parallel()
	b := startBuiltIn(t, plan{})
	b.mustSend(http.MethodPost, "/studies/S2", "", http.StatusOK)
	id := b.submit("S1")
	for group, list := range map[string][]refusal{
		"registration": registrations(), "question": questions(), "submission": submissions(b), "change": changes(b, id),
	} {
		t.Run(group, func(t *testing.T) {
			for _, r := range list {
				t.Run(r.name, func(t *testing.T) { r.check(t, b) })
			}
		})
	}
	if got := b.storedAnalyses(everyState); len(got) != 1 || !strings.Contains(got[id], `"UNPUBLISHED"`) {
		t.Errorf("kept: %v", got)
	}
	if a := b.mustSend(http.MethodGet, "/schemas", "", http.StatusOK); a.get("count").Int() != 1 {
		t.Errorf("analysis types: %s", a.raw)
	}
	if a := b.mustSend(http.MethodGet, "/studies/all", "", http.StatusOK); strings.TrimSpace(string(a.raw)) != `["S1","S2"]` {
		t.Errorf("studies: %s", a.raw)
	}
	if n := b.outboxCount(); n != 0 {
		t.Errorf("%d changes were published", n)
	}
	for _, line := range b.logs.all() {
		if strings.Contains(line, `"level":"ERROR"`) {
			t.Errorf("an error is in the log: %s", line)
		}
	}
}
