package app_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
)

// TestGeneratedSubmissions: whatever is submitted, an analysis that was accepted is found after its publication, or is a dead letter because
// a value has another kind than the field has by then, because the whole index has reached a limit, or because newFields is reject and the
// index lacks a field of the mapping file.
// TUTTI_TEST_CASES=20 makes them 10,000.
func TestGeneratedSubmissions(t *testing.T) {
	t.Parallel()
	for newFields, cases := range map[string]int{"add": 350, "reject": 150} {
		t.Run(newFields, func(t *testing.T) {
			t.Parallel()
			p := plan{repository: "newFields: " + newFields}
			if newFields == "reject" {
				file := filepath.Join(t.TempDir(), "mapping.json")
				if err := os.WriteFile(file, []byte(generatedMapping()), 0o600); err != nil {
					t.Fatal(err)
				}
				p.repository += fmt.Sprintf("\nmappingFile: %q", file)
			}
			startBuiltIn(t, p).generateSubmissions(newFields, max(100, testkit.Cases(cases)))
		})
	}
}

// generatedMapping returns a mapping file with the fields of experiment that an analysisGenerator generates.
func generatedMapping() string {
	var object func(depth int) string
	object = func(depth int) string {
		fields := `"k0":{"type":"long"},"k1":{"type":"keyword"},"k2":{"type":"double"},"k3":{"type":"boolean"},"k4":{"type":"date"}`
		if depth > 0 {
			below := object(depth - 1)
			fields += `,"k5":{"type":"nested",` + below + `},"k6":{` + below + `},"info":{` + below + `}`
		}
		return `"properties":{` + fields + `}`
	}
	return `{"mappings":{"properties":{"experiment":{` + object(3) + `}}}}`
}

// generateSubmissions submits and publishes analyses, and examines what became of each.
func (b *builtIn) generateSubmissions(newFields string, cases int) {
	t := b.t
	g := &analysisGenerator{rand: rand.New(rand.NewPCG(37, 1))}
	for i, schema := range []string{
		`{"type":"object","required":["experiment"],"properties":{"experiment":{}}}`,
		`{"type":"object","required":["experiment"],"properties":{"experiment":{"$ref":"#/definitions/e"}},"definitions":{"e":{"type":["object","string"]}}}`,
		`{"type":"object","required":["experiment"],"properties":{"experiment":{"properties":{"k0":{"type":"integer"},"k1":{"type":"string"}}}}}`,
	} {
		b.mustSend(http.MethodPost, "/schemas", fmt.Sprintf(`{"name":"t%d","schema":%s}`, i, schema), http.StatusOK)
	}
	statuses, reasons := map[int]int{}, map[string]int{}
	var accepted []string
	for range cases {
		body := g.analysis()
		a, err := b.send(http.MethodPost, "/submit/S1", body)
		if err != nil {
			t.Fatal(err)
		}
		switch statuses[a.status]++; {
		case a.status == http.StatusOK:
			id := a.get("analysisId").String()
			accepted = append(accepted, id)
			b.publish("S1", id)
		case strings.Contains(a.get("message").String(), "is a field that the mapping does not have"):
			reasons["new field at submission"]++
		case a.status != http.StatusBadRequest || a.get("errorId").String() == "" || a.get("message").String() == "":
			t.Errorf("%.300s: %d %s", body, a.status, a.raw)
		}
	}
	var documents map[string]string
	var letters map[string]core.DeadLetter
	b.eventually(wait, func() (bool, string) {
		documents, letters = b.documents(), b.allDeadLetters()
		return len(documents)+len(letters) >= len(accepted), fmt.Sprintf("%d documents and %d dead letters of %d", len(documents), len(letters), len(accepted))
	})
	for _, id := range accepted {
		_, found := documents[id]
		letter, dead := letters[id]
		reason := "found"
		switch {
		case found == dead:
			reason = ""
		case found:
		case strings.Contains(letter.Hint, "does not fit its type in the index"),
			strings.Contains(letter.EngineReason, "is a whole number beyond 2^53 in a field that nothing declares"):
			reason = "kind"
		case strings.Contains(letter.Hint, "index.limits."):
			reason = "limit"
		case newFields == "reject" && strings.Contains(letter.Hint, "newFields is reject"):
			reason = "new field"
		default:
			reason = ""
		}
		if reasons[reason]++; reason == "" {
			t.Errorf("%s: found %t, dead letter %s, %.300s, hint %q", id, found, letter.Reason, letter.EngineReason, letter.Hint)
		}
	}
	t.Logf("%v, of which %v", statuses, reasons)
	if statuses[http.StatusOK] < statuses[http.StatusBadRequest]/4 || statuses[http.StatusBadRequest] == 0 || reasons["found"] == 0 ||
		newFields == "add" && reasons["kind"] == 0 || (newFields == "reject") != (reasons["new field at submission"] > 0) {
		t.Errorf("the generator tries too little: %v, %v", statuses, reasons)
	}
}

// allDeadLetters returns the dead letters of the world by record.
func (b *builtIn) allDeadLetters() map[string]core.DeadLetter {
	b.t.Helper()
	all := map[string]core.DeadLetter{}
	for cursor, more := "", true; more; more = cursor != "" {
		letters, next, err := b.app.Queue().DeadLetters().List(b.t.Context(), core.DeadLetterFilter{Limit: 1000, Cursor: cursor})
		if err != nil {
			b.t.Fatal(err)
		}
		for _, l := range letters {
			all[l.RecordID] = l
		}
		cursor = next
	}
	return all
}

// analysisGenerator generates analyses.
type analysisGenerator struct {
	rand *rand.Rand
	n    int
}

// one reports true once in n times.
func (g *analysisGenerator) one(n int) bool { return g.rand.IntN(n) == 0 }

func (g *analysisGenerator) of(choice ...string) string { return choice[g.rand.IntN(len(choice))] }

func (g *analysisGenerator) analysis() string {
	g.n++
	experiment, info, more := g.object(3), "", ""
	if g.one(8) {
		experiment = g.value("v", 1)
	}
	if g.one(2) {
		info = `,"info":` + g.object(2)
	}
	if g.one(12) {
		info = `,"info":` + g.value("v", 2)
	}
	if g.one(4) {
		object := g.object(2)
		more = "," + object[1:len(object)-1]
	}
	if g.one(20) {
		more = `,` + g.of(`"_id":"x"`, `"_source":{}`, `" ":1`, `"a..b":1`, `"":1`, `"repositories":1`, `"repositories":[]`, `"files.info":"x"`)
	}
	if more == "," {
		more = ""
	}
	return fmt.Sprintf(`{"studyId":"S1","analysisType":{"name":"t%d"},"experiment":%s,"files":[{"dataType":"reads","fileName":"f%d","fileSize":%d,`+
		`"fileType":"BAM","fileAccess":"open","fileMd5sum":"%032x"%s}]%s}`, g.rand.IntN(3), experiment, g.n, g.n, g.n, info, more)
}

func (g *analysisGenerator) object(depth int) string {
	var members, names []string
	for range g.rand.IntN(4) {
		name := g.of("k0", "k1", "k2", "k3", "k4", "k5", "k6", "info", "é", "k7.k8")
		if g.one(60) {
			name = g.of("", " ", ".", "a.", "a..b", "_id", "\u0000", fmt.Sprintf("new%d", g.n), strings.Repeat("n", 600))
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
			quoted, _ := json.Marshal(name)
			members = append(members, string(quoted)+":"+g.value(name, depth))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}

// value returns a value: mostly of the kind that the name has, so that most analyses fit.
func (g *analysisGenerator) value(name string, depth int) string {
	kind := name
	if g.one(40) {
		kind = g.of("k0", "k1", "k2", "k3", "k4", "k5", "k6", "info")
	}
	switch {
	case g.one(15):
		return "null"
	case g.one(60):
		return strings.Repeat(`{"d":`, 22) + "1" + strings.Repeat("}", 22)
	}
	switch kind {
	case "k0":
		return g.of("0", "1", "-7", "9007199254740993", "1e3", "9223372036854775807")
	case "k1":
		long, _ := json.Marshal(strings.Repeat("é", 8000+g.rand.IntN(20_000)))
		return g.of(`"text"`, `""`, `"é\u0000"`, `"2020-01-01x"`, string(long))
	case "k2":
		return g.of("1.5", "2.5", "-0.0", "1e300")
	case "k3":
		return g.of("true", "false")
	case "k4":
		return g.of(`"2020-01-01"`, `"2024-02-29T01:02:03Z"`)
	case "k5":
		if depth > 0 {
			return "[" + g.object(depth-1) + "," + g.object(depth-1) + "]"
		}
		return "[]"
	case "k6", "info":
		if depth > 0 {
			return g.object(depth - 1)
		}
		return "{}"
	default:
		return g.of(`["a","b"]`, `"c"`, `[]`)
	}
}
