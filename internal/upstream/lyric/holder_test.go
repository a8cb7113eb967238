package lyric_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/internal/core"
	"tutti/internal/tools/testkit"
	"tutti/internal/upstream/lyric"
)

// clinic is the dictionary of donors, their specimens, and samples and slides of specimens; slides also have a donor of their own and a stain, which is
// part of no donor, and notes belong to nothing.
const clinic = `{"name":"clinic","version":"1.0","schemas":[{"name":"donor","fields":[]},
	{"name":"specimen","restrictions":{"foreignKey":[{"schema":"donor","mappings":[{"local":"donor_id","foreign":"donor_id"}]}]}},
	{"name":"sample","restrictions":{"foreignKey":[{"schema":"specimen","mappings":[{"local":"specimen_id","foreign":"specimen_id"}]}]}},
	{"name":"slide","restrictions":{"foreignKey":[{"schema":"specimen","mappings":[{"local":"specimen_id","foreign":"specimen_id"}]},
		{"schema":"donor","mappings":[{"local":"donor_id","foreign":"donor_id"}]},{"schema":"stain","mappings":[{"local":"stain_id","foreign":"stain_id"}]}]}},
	{"name":"stain","restrictions":{}},
	{"name":"note","restrictions":{}}]}`

// record is a record of Lyric in the compound view.
func record(id, organization, entity, data string) []byte {
	return fmt.Appendf(nil, `{"entityName":%q,"data":%s,"organization":%q,"isValid":true,"systemId":%q}`, entity, data, organization, id)
}

// serveClinic serves donors 1 and 2, of which the first has a specimen with a sample, in a category with the given central entity.
func serveClinic(t *testing.T, cfg testkit.LyricConfig) *testkit.LyricServer {
	t.Helper()
	server := serve(t, cfg)
	for _, body := range [][]byte{
		record("DO1", "O", "donor", `{"donor_id":"D1","specimens":[{"specimen_id":"S1","samples":[{"sample_id":"A1"}]}]}`),
		record("DO2", "O", "donor", `{"donor_id":"D2"}`), record("DO3", "O", "donor", `{"donor_id":"twice"}`), record("DO4", "O", "donor", `{"donor_id":"twice"}`),
		record("SP1", "O", "specimen", `{"donor_id":"D1","specimen_id":"S1","volume":0.5}`),
		record("SP5", "O", "specimen", `{"donor_id":5,"specimen_id":"S5"}`), record("DO5", "O", "donor", `{"donor_id":5}`),
		record("SA1", "O", "sample", `{"specimen_id":"S1","sample_id":"A1"}`),
	} {
		if err := server.Put("O", body); err != nil {
			t.Fatal(err)
		}
	}
	return server
}

// TestRecordOfOtherEntities: without a configured entity, the entities that a category lists have documents: its central one, or all.
func TestRecordOfOtherEntities(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		cfg  testkit.LyricConfig
		want map[string]bool
	}{
		"central entity": {testkit.LyricConfig{CentralEntity: "donor"}, map[string]bool{"DO1": true, "SP1": false, "SA1": false}},
		"last by name":   {testkit.LyricConfig{CentralEntity: "specimen"}, map[string]bool{"DO1": false, "SP1": true, "SA1": false}},
		"none":           {testkit.LyricConfig{}, map[string]bool{"DO1": true, "SP1": true, "SA1": true}},
		"empty list":     {testkit.LyricConfig{CentralEntity: "other"}, map[string]bool{"DO1": false, "SP1": false, "SA1": false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := client(t, serveClinic(t, tt.cfg), lyric.Config{ValidOnly: true})
			for range 2 { // not known, known
				for id, want := range tt.want {
					got, err := c.Record(t.Context(), "O", id)
					if err != nil || got.Indexable != want || (got.Part == nil) != want {
						t.Errorf("%s: indexable %v, part %v, %v", id, got.Indexable, got.Part, err)
					}
				}
			}
			got, err := c.Record(t.Context(), "O", "SP1")
			want := &core.Part{Entity: "specimen", Fields: map[string]string{"donor_id": "D1", "specimen_id": "S1", "volume": "0.5"}}
			if diff := cmp.Diff(want, got.Part); !tt.want["SP1"] && diff != "" || err != nil {
				t.Error(diff, err)
			}
		})
	}
}

// TestCentralEntityIsNotAssumed: records of the first entity alone do not show that a category has a central one, and an empty list not that it
// stays empty.
func TestCentralEntityIsNotAssumed(t *testing.T) {
	t.Parallel()
	server := serve(t, testkit.LyricConfig{})
	c := client(t, server, lyric.Config{})
	for _, entity := range []string{"donor", "specimen", "another"} {
		if err := server.Put("O", record(entity, "O", entity, `{}`)); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Record(t.Context(), "O", entity); err != nil || !got.Indexable {
			t.Errorf("%s: %+v, %v", entity, got, err)
		}
	}
	server = serve(t, testkit.LyricConfig{CentralEntity: "donor"})
	c = client(t, server, lyric.Config{})
	for _, entity := range []string{"specimen", "donor", "specimen"} {
		if err := server.Put("O", record(entity, "O", entity, `{}`)); err != nil {
			t.Fatal(err)
		}
		if got, err := c.Record(t.Context(), "O", entity); err != nil || got.Indexable != (entity == "donor") {
			t.Errorf("%s: %+v, %v", entity, got, err)
		}
	}
}

// TestHolder: the foreign keys of a part lead to the central record that contains it, if they name exactly one.
func TestHolder(t *testing.T) {
	t.Parallel()
	part := func(entity string, fields ...string) core.Part {
		p := core.Part{Entity: entity}
		for i := 0; i < len(fields); i += 2 {
			if p.Fields == nil {
				p.Fields = map[string]string{}
			}
			p.Fields[fields[i]] = fields[i+1]
		}
		return p
	}
	for name, tt := range map[string]struct {
		cfg    testkit.LyricConfig
		part   core.Part
		id     string
		isPart bool
	}{
		"specimen":                   {part: part("specimen", "donor_id", "D1", "specimen_id", "S9"), id: "DO1", isPart: true},
		"sample":                     {part: part("sample", "specimen_id", "S1"), id: "DO1", isPart: true},
		"number":                     {part: part("sample", "specimen_id", "S5"), id: "DO5", isPart: true},
		"two keys that agree":        {part: part("slide", "specimen_id", "S1", "donor_id", "D1"), id: "DO1", isPart: true},
		"a key that leads elsewhere": {part: part("slide", "specimen_id", "S1", "donor_id", "D1", "stain_id", "absent"), id: "DO1", isPart: true},
		"two keys that do not agree": {part: part("slide", "specimen_id", "S1", "donor_id", "D2"), isPart: true},
		"no parent":                  {part: part("sample", "specimen_id", "S9"), isPart: true},
		"several":                    {part: part("specimen", "donor_id", "twice"), isPart: true},
		"no key":                     {part: part("specimen", "specimen_id", "S1"), isPart: true},
		"no relation":                {part: part("note", "donor_id", "D1"), isPart: true},
		"unknown entity":             {part: part("other", "donor_id", "D1"), isPart: true},
		"no fields":                  {part: part("sample"), isPart: true},
		"nothing known":              {part: part(""), isPart: true},
		"quotes":                     {part: part("specimen", "donor_id", `D1') or ('1'='1`), isPart: true},
		"a central record":           {part: part("donor", "donor_id", "D1")},
		"no central entity":          {cfg: testkit.LyricConfig{Dictionary: []byte(clinic)}, part: part("sample", "specimen_id", "S1")},
		"empty list":                 {cfg: testkit.LyricConfig{Dictionary: []byte(clinic), CentralEntity: "none"}, part: part("sample", "specimen_id", "S1")},
		"no dictionary":              {cfg: testkit.LyricConfig{CentralEntity: "donor"}, part: part("sample", "specimen_id", "S1"), isPart: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.cfg.CentralEntity == "" && tt.cfg.Dictionary == nil {
				tt.cfg = testkit.LyricConfig{Dictionary: []byte(clinic), CentralEntity: "donor"}
			}
			server := serveClinic(t, tt.cfg)
			id, isPart, err := client(t, server, lyric.Config{}).Holder(t.Context(), "O", tt.part)
			if id != tt.id || isPart != tt.isPart || err != nil {
				t.Errorf("got %q, %v, %v", id, isPart, err)
			}
			if name == "quotes" && server.Requests(testkit.LyricRouteQuery) > 0 {
				t.Error("a value that Lyric does not escape was sent")
			}
		})
	}
}

// TestHolderOfRefusedQueries: whatever the server says to a query, the holder is not known, and a run finds it.
func TestHolderOfRefusedQueries(t *testing.T) {
	t.Parallel()
	for _, status := range []int{401, 403, 404, 500, 503} {
		server := serveClinic(t, testkit.LyricConfig{Dictionary: []byte(clinic), CentralEntity: "donor"})
		server.Fail(testkit.Fault{Status: status, Path: regexp.MustCompile("/query")})
		id, isPart, err := client(t, server, lyric.Config{}).Holder(t.Context(), "O", core.Part{Entity: "specimen", Fields: map[string]string{"donor_id": "D1"}})
		if id != "" || !isPart || err != nil {
			t.Errorf("%d: %q, %v, %v", status, id, isPart, err)
		}
	}
}

func TestOtherEntities(t *testing.T) {
	t.Parallel()
	for central, want := range map[string][]string{"donor": {"note", "sample", "slide", "specimen", "stain"}, "": nil} {
		server := serveClinic(t, testkit.LyricConfig{Dictionary: []byte(clinic), CentralEntity: central})
		got, err := client(t, server, lyric.Config{}).OtherEntities(t.Context())
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%q: %v %s", central, err, diff)
		}
	}
}

// TestCaseOfARealLyric: the bodies of a real Lyric 0.19, of testdata.
func TestCaseOfARealLyric(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/central.json")
	if err != nil {
		t.Fatal(err)
	}
	var real struct {
		List struct{ Records []json.RawMessage }
		ByID map[string]json.RawMessage
	}
	if err := json.Unmarshal(data, &real); err != nil {
		t.Fatal(err)
	}
	server := serve(t, testkit.LyricConfig{CentralEntity: "donor", Dictionary: []byte(clinic)})
	for _, body := range append(real.List.Records, real.ByID["SP0000000000000000001"]) {
		if err := server.Put("Org A", body); err != nil {
			t.Fatal(err)
		}
	}
	c := client(t, server, lyric.Config{ValidOnly: true})
	for id, indexable := range map[string]bool{"DO0000000000000000001": true, "DO0000000000000000002": false, "SP0000000000000000001": false} {
		got, err := c.Record(t.Context(), "Org A", id)
		if err != nil || got.Indexable != indexable || (got.Part != nil) != (id[:2] == "SP") {
			t.Errorf("%s: %+v, %v", id, got, err)
		}
	}
	server.Fail(testkit.Fault{Path: regexp.MustCompile("/id/SA"), Status: 404, Body: `{"error":"Not Found","message":"No record found with systemId SA0000000000000000001"}`, ContentType: "application/json"})
	if _, err := c.Record(t.Context(), "Org A", "SA0000000000000000001"); core.CodeOf(err) != core.CodeAbsent {
		t.Errorf("absent: %v", err)
	}
}
