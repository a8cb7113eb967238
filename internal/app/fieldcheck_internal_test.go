package app

import (
	"fmt"
	"strings"
	"testing"

	"tutti/internal/index/mapping"
)

// TestDocumentFaultNames: a name that the index rejects as soon as another document has added its object is refused at submission.
func TestDocumentFaultNames(t *testing.T) {
	known, limits := mapping.Song(), mapping.DefaultLimits()
	if fault := (&fieldCheck{known: known}).fault(limits, []byte(`{"experiment":{"":null}}`)); !strings.Contains(fault, "[experiment.] field name") {
		t.Errorf("%q", fault)
	}
	long := fmt.Appendf(nil, `{"info":{"a":%q}}`, strings.Repeat("x", 32_767))
	if fault := (&fieldCheck{known: known}).fault(limits, long); fault != "" {
		t.Errorf("a value over ignore_above: %q", fault)
	}
	limits.AllTerms = true
	if fault := (&fieldCheck{known: known}).fault(limits, long); !strings.Contains(fault, "a value in the free-form object info has more than 32,766 bytes") {
		t.Errorf("a value that OpenSearch does not take: %q", fault)
	}
}

// BenchmarkDocumentFault measures what the check adds to a submission of 20 files.
func BenchmarkDocumentFault(b *testing.B) {
	var files []string
	for i := range 20 {
		files = append(files, fmt.Sprintf(`{"objectId":"o%d","fileName":"f%d.bam","fileSize":%d,"fileType":"BAM","fileMd5sum":"%032x","fileAccess":"open",`+
			`"dataType":"reads","info":{"a":%d}}`, i, i, i, i, i))
	}
	document := []byte(`{"analysisId":"A","studyId":"S","analysisState":"PUBLISHED","experiment":{"a":1,"b":"x","c":[{"d":1.5},{"d":2.5}],"e":{"f":true}},` +
		`"files":[` + strings.Join(files, ",") + `]}`)
	known, limits := mapping.Song(), mapping.DefaultLimits()
	check := &fieldCheck{known: known}
	b.SetBytes(int64(len(document)))
	for b.Loop() {
		if fault := check.fault(limits, document); fault != "" {
			b.Fatal(fault)
		}
	}
}

// TestDocumentFaultLimits: a submission is refused where one analysis alone decides: more objects in lists, fields or levels than the index takes,
// and longer terms. The reason names the limit and its key. One with 10,001 files is below the default.
func TestDocumentFaultLimits(t *testing.T) {
	known := mapping.Song()
	files := func(n int) []byte {
		return []byte(`{"analysisId":"A","files":[` + strings.TrimSuffix(strings.Repeat(`{"fileName":"f"},`, n), ",") + `]}`)
	}
	members := func(n int, format string) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(format, i)
		}
		return strings.Join(all, ",")
	}
	lists := func(n int) []byte { return []byte(`{"experiment":{` + members(n, `"l%d":[{"a":1}]`) + `}}`) }
	standard, few := mapping.DefaultLimits(), mapping.DefaultLimits()
	few.Objects, few.Fields, few.Nested, few.Depth = 3, 200, 10, 5
	used := &fieldCheck{known: known}
	for name, tt := range map[string]struct {
		limits   mapping.Limits
		document []byte
		want     string
	}{
		"10,001 files":        {standard, files(10_001), ""},
		"most objects":        {few, files(3), ""},
		"more objects":        {few, files(4), "at most 3 objects in the lists of one document: leave out what is not searched, or map it with enabled: false in the mapping file; or raise index.limits.nestedObjects"},
		"more lists":          {few, lists(10), "raise index.limits.nestedFields"},
		"more lists, default": {standard, lists(200), "raise index.limits.nestedFields"},
		"more levels":         {few, []byte(`{"experiment":{"a":{"b":{"c":{"d":{"e":1}}}}}}`), "at most 5 levels of fields"},
		"more fields":         {few, []byte(`{"experiment":{` + members(200, `"f%d":1`) + `}}`), "raise index.limits.fields"},
		"a long name":         {standard, fmt.Appendf(nil, `{"info":{%q:"x"}}`, strings.Repeat("n", 32_767)), "a value in the free-form object info has more than 32,766 bytes"},
	} {
		if got := (&fieldCheck{known: known}).fault(tt.limits, tt.document); tt.want == "" && got != "" || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want it with %q", name, got, tt.want)
		} else if again := used.fault(tt.limits, tt.document); again != got {
			t.Errorf("%s: %q after others, want %q", name, again, got)
		}
	}
}

// TestAcceptedFields: the fields of accepted documents are remembered together, for the same limits, up to a bound. Those of a refused one are not.
func TestAcceptedFields(t *testing.T) {
	c, limits := &fieldCheck{known: mapping.Song()}, mapping.DefaultLimits()
	accept := func(document string, paths ...string) *acceptedFields {
		t.Helper()
		if fault := c.fault(limits, []byte(document)); fault != "" {
			t.Error(fault)
		}
		for _, path := range paths {
			if c.accepted.Load().tree.Lookup(path) == nil {
				t.Errorf("after %s the field %s is not known", document, path)
			}
		}
		return c.accepted.Load()
	}
	accept(`{"experiment":{"a":1}}`, "experiment.a")
	both := accept(`{"experiment":{"b":"x"}}`, "experiment.a", "experiment.b")
	if accept(`{"experiment":{"a":2,"b":"y"}}`) != both {
		t.Error("a document without other fields changes them")
	}
	if c.fault(limits, []byte(`{"experiment":{"c":{"":null}}}`)) == "" || c.accepted.Load() != both {
		t.Error("the fields of a refused document are remembered")
	}
	accept(`{"experiment":{"a":"a text","d":1}}`, "experiment.d") // of another type than the first one's
	var many strings.Builder
	for i := range maxAccepted {
		fmt.Fprintf(&many, `,"f%d":1`, i)
	}
	before := c.accepted.Load()
	if accept(`{"experiment":{"e":1`+many.String()+`}}`) != before {
		t.Error("more fields than the bound are remembered")
	}
	limits.Objects--
	if after := accept(`{"experiment":{"g":1}}`, "experiment.g"); after.tree.Lookup("experiment.a") != nil {
		t.Error("the fields of other limits are remembered")
	}
}
