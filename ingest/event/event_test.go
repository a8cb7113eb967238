package event_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/ingest/event"
	"tutti/internal/core"
	"tutti/internal/upstream/protocol"
)

func TestParseEvent(t *testing.T) {
	long := strings.Repeat("x", 512)
	for name, tt := range map[string]struct {
		body string
		want event.Event
	}{
		"maestro repository": {
			`{"repositoryCode":"song.ca"}`,
			event.Event{Format: event.FormatMaestro, Repository: "song.ca"},
		},
		"maestro organization": {
			`{"repositoryCode":"song.ca","studyId":"S"}`,
			event.Event{Format: event.FormatMaestro, Repository: "song.ca", Organization: "S"},
		},
		"maestro record": {
			`{"analysisId":"A","studyId":"S","repositoryCode":"song.ca","removeAnalysis":false}`,
			event.Event{Format: event.FormatMaestro, Repository: "song.ca", Organization: "S", RecordID: "A"},
		},
		"maestro removal": {
			`{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","removeAnalysis":true}`,
			event.Event{Format: event.FormatMaestro, Repository: "song.ca", Organization: "S", RecordID: "A", Remove: true},
		},
		"null is absent": {
			`{"repositoryCode":"song.ca","studyId":null,"analysisId":null,"removeAnalysis":null}`,
			event.Event{Format: event.FormatMaestro, Repository: "song.ca"},
		},
		"removal as Maestro 5 has it": {
			`{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","remove":true}`,
			event.Event{Format: event.FormatMaestro, Repository: "song.ca", Organization: "S", RecordID: "A", Remove: true},
		},
		"both names of a removal": {
			`{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","removeAnalysis":true,"remove":true}`,
			event.Event{Format: event.FormatMaestro, Repository: "song.ca", Organization: "S", RecordID: "A", Remove: true},
		},
		"Kafka's REST form": {
			`{"value":{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","remove":true}}`,
			event.Event{Format: event.FormatMaestro, Repository: "song.ca", Organization: "S", RecordID: "A", Remove: true},
		},
		"ids that are numbers": {
			`{"repositoryCode":"song.ca","studyId":17,"analysisId":4200000000000000001}`,
			event.Event{Format: event.FormatMaestro, Repository: "song.ca", Organization: "17", RecordID: "4200000000000000001"},
		},
		"empty is absent": {
			`{"repositoryCode":"song.ca","studyId":"","analysisId":""}`,
			event.Event{Format: event.FormatMaestro, Repository: "song.ca"},
		},
		"unknown members": {
			`{"repositoryCode":"song.ca","removeAnalyses":true,"` + strings.Repeat("x", 70) + `":1,"action":"x"}`,
			event.Event{Format: event.FormatMaestro, Repository: "song.ca", Unknown: []string{"removeAnalyses", strings.Repeat("x", 64)}},
		},
		"song": {
			`{"analysisId":"A","studyId":"S","state":"PUBLISHED","action":"PUBLISH","songServerId":"song.ca","analysis":{"analysisId":"B"}}`,
			event.Event{Format: "song", Servers: []string{"song.ca"}, Organization: "S", RecordID: "A"},
		},
		"song does not remove": {
			`{"analysisId":"A","studyId":"S","removeAnalysis":true}`,
			event.Event{Format: "song", Organization: "S", RecordID: "A"},
		},
		"lyric": {
			`{"action":"delete","categoryId":3,"categoryAlias":"donor","entityName":"donor","isValid":false,` +
				`"organization":"O","systemId":"L1","data":{"studyId":"S"}}`,
			event.Event{Format: "lyric", Servers: []string{"3", "donor"}, Organization: "O", RecordID: "L1", Deleted: &core.Part{Entity: "donor", Fields: map[string]string{"studyId": "S"}}},
		},
		"lyric, with fields of all kinds": {
			`{"action":"delete","entityName":"sample","organization":"O","systemId":"L1","data":{"a":"\u00e9","n":-1.50,"b":true,"l":["x"],"o":{},` +
				`"none":null,"long":"` + strings.Repeat("x", 300) + `"}}`,
			event.Event{Format: "lyric", Organization: "O", RecordID: "L1", Deleted: &core.Part{Entity: "sample", Fields: map[string]string{"a": "é", "n": "-1.50"}}},
		},
		"lyric, not deleted": {
			`{"action":"update","entityName":"sample","organization":"O","systemId":"L1","data":{"specimen_id":"S1"}}`,
			event.Event{Format: "lyric", Organization: "O", RecordID: "L1"},
		},
		"lyric without its data": {
			`{"action":"delete","entityName":"sample","organization":"O","systemId":"L1"}`,
			event.Event{Format: "lyric", Organization: "O", RecordID: "L1", Deleted: &core.Part{Entity: "sample"}},
		},
		"lyric with a category of text": {
			`{"systemId":"L1","organization":"O","categoryId":"3"}`,
			event.Event{Format: "lyric", Servers: []string{"3"}, Organization: "O", RecordID: "L1"},
		},
		"escapes": {
			`{"analysis\u0049d":"a\n\"b\u0000","studyId":"日本"}`,
			event.Event{Format: "song", Organization: "日本", RecordID: "a\n\"b\x00"},
		},
		"the longest id": {
			`{"analysisId":"` + long + `","studyId":"S"}`,
			event.Event{Format: "song", Organization: "S", RecordID: long},
		},
		"space around": {
			" \r\n\t{\"repositoryCode\" : \"song.ca\" } ",
			event.Event{Format: event.FormatMaestro, Repository: "song.ca"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, rejection := event.NewParser(protocol.EventFormats()).Parse([]byte(tt.body))
			if rejection != nil {
				t.Fatalf("rejection %+v", *rejection)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestAnyFormat: a format needs nothing but its description.
func TestAnyFormat(t *testing.T) {
	p := event.NewParser(map[core.RepositoryType]core.EventFormat{"fhir": {
		Name: "fhir", RecordID: "id", Organization: "managingOrganization", Servers: []core.EventMember{{Name: "server"}},
		Ignored: []string{"resourceType"},
	}})
	got, rejection := p.Parse([]byte(`{"resourceType":"Patient","id":"P","managingOrganization":"O","server":"s","more":1}`))
	want := event.Event{Format: "fhir", RecordID: "P", Organization: "O", Servers: []string{"s"}, Unknown: []string{"more"}}
	if diff := cmp.Diff(want, got); diff != "" || rejection != nil {
		t.Error(diff, rejection)
	}
	if _, rejection = p.Parse([]byte(`{"analysisId":"A"}`)); rejection == nil || rejection.Message != "the event has none of the members repositoryCode and id" {
		t.Errorf("got %+v", rejection)
	}
}

func TestParseEventNamesTheMember(t *testing.T) {
	for name, tt := range map[string]struct {
		body string
		want event.Rejection
	}{
		"empty":         {``, event.Rejection{Message: "the event is empty"}},
		"broken":        {`{"analysisId":"A"`, event.Rejection{Message: "the event is not valid JSON"}},
		"two values":    {`{} {}`, event.Rejection{Message: "the event is not valid JSON"}},
		"text":          {`"analysisId"`, event.Rejection{Message: "the event is not a JSON object"}},
		"array":         {`[{"analysisId":"A"}]`, event.Rejection{Message: "the event is not a JSON object"}},
		"null":          {`null`, event.Rejection{Message: "the event is not a JSON object"}},
		"nothing known": {`{"record":{"analysisId":"A"}}`, event.Rejection{Message: "the event has none of the members repositoryCode, systemId and analysisId"}},
		"deep": {
			`{"analysis":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`,
			event.Rejection{Message: "the event is nested deeper than 500 levels"},
		},
		"a million brackets": {strings.Repeat("[", 1_000_000), event.Rejection{Message: "the event is nested deeper than 500 levels"}},
		"maestro analysis without study": {
			`{"repositoryCode":"song.ca","analysisId":"A"}`,
			event.Rejection{Member: "studyId", Message: "studyId is missing: analysisId needs it", RecordID: "A"},
		},
		"removal of an organization": {
			`{"repositoryCode":"song.ca","studyId":"S","removeAnalysis":true}`,
			event.Rejection{Member: "analysisId", Message: "analysisId is missing: removeAnalysis exists for one record only", Organization: "S"},
		},
		"two values inside each other": {
			`{"value":{"value":{"repositoryCode":"song.ca"}}}`,
			event.Rejection{Message: "the event has none of the members repositoryCode, systemId and analysisId"},
		},
		"removal that contradicts itself": {
			`{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","removeAnalysis":false,"remove":true}`,
			event.Rejection{Member: "remove", Message: "remove contradicts removeAnalysis", Organization: "S", RecordID: "A"},
		},
		"removal as text, by its new name": {
			`{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","remove":"yes"}`,
			event.Rejection{Member: "remove", Message: "remove must be true or false", Organization: "S", RecordID: "A"},
		},
		"removal of no record, by its new name": {
			`{"repositoryCode":"song.ca","studyId":"S","analysisId":"","remove":true}`,
			event.Rejection{Member: "analysisId", Message: "analysisId is missing: remove exists for one record only", Organization: "S"},
		},
		"removal of a repository": {
			`{"repositoryCode":"song.ca","removeAnalysis":true}`,
			event.Rejection{Member: "analysisId", Message: "analysisId is missing: removeAnalysis exists for one record only"},
		},
		"removal that is text": {
			`{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","removeAnalysis":"true"}`,
			event.Rejection{Member: "removeAnalysis", Message: "removeAnalysis must be true or false", Organization: "S", RecordID: "A"},
		},
		"removal that is a number": {
			`{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","removeAnalysis":1}`,
			event.Rejection{Member: "removeAnalysis", Message: "removeAnalysis must be true or false", Organization: "S", RecordID: "A"},
		},
		"removal said twice": {
			`{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","removeAnalysis":false,"removeAnalysis":true}`,
			event.Rejection{Member: "removeAnalysis", Message: "removeAnalysis occurs twice", Organization: "S", RecordID: "A"},
		},
		"code that is a number": {
			`{"repositoryCode":1.5}`, event.Rejection{Member: "repositoryCode", Message: "repositoryCode must be a string"},
		},
		"empty code": {
			`{"repositoryCode":""}`, event.Rejection{Member: "repositoryCode", Message: "repositoryCode is empty"},
		},
		"run of a study that no path can name": {
			`{"repositoryCode":"song.ca","studyId":".."}`,
			event.Rejection{Member: "studyId", Message: "studyId must not be a relative path segment", Organization: ".."},
		},
		"song without study": {
			`{"analysisId":"A","songServerId":"song.ca"}`,
			event.Rejection{Member: "studyId", Message: "studyId is missing", RecordID: "A"},
		},
		"song with a number": {
			`{"analysisId":7,"studyId":"S"}`,
			event.Rejection{Member: "analysisId", Message: "analysisId must be a string", Organization: "S"},
		},
		"song with an object": {
			`{"analysisId":{"studyId":"T"},"studyId":"S"}`,
			event.Rejection{Member: "analysisId", Message: "analysisId must be a string", Organization: "S"},
		},
		"long id": {
			`{"analysisId":"` + strings.Repeat("x", 513) + `","studyId":"S"}`,
			event.Rejection{
				Member: "analysisId", Message: "analysisId has 513 bytes, the limit is 512", Organization: "S",
				RecordID: strings.Repeat("x", 513),
			},
		},
		"bytes that are no text": {
			"{\"analysisId\":\"a\xff\",\"studyId\":\"S\"}",
			event.Rejection{Member: "analysisId", Message: "analysisId is not valid UTF-8", Organization: "S", RecordID: "a\uFFFD"},
		},
		"server that is a number": {
			`{"analysisId":"A","studyId":"S","songServerId":3}`,
			event.Rejection{Member: "songServerId", Message: "songServerId must be a string", Organization: "S", RecordID: "A"},
		},
		"lyric without organization": {
			`{"systemId":"L1","studyId":"S"}`,
			event.Rejection{Member: "organization", Message: "organization is missing", RecordID: "L1"},
		},
		"lyric with a category that is neither": {
			`{"systemId":"L1","organization":"O","categoryId":true}`,
			event.Rejection{Member: "categoryId", Message: "categoryId must be a number or a string", Organization: "O", RecordID: "L1"},
		},
		"lyric with an alias that is a number": {
			`{"systemId":"L1","organization":"O","categoryAlias":3}`,
			event.Rejection{Member: "categoryAlias", Message: "categoryAlias must be a string", Organization: "O", RecordID: "L1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e, rejection := event.NewParser(protocol.EventFormats()).Parse([]byte(tt.body))
			if rejection == nil {
				t.Fatalf("understood as %+v", e)
			}
			if diff := cmp.Diff(tt.want, *rejection); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzParseEvent: an event or a rejection, never both nor a panic; JSON is what encoding/json takes for it; what is understood
// makes a valid Request and a removal only where the event says so itself.
func FuzzParseEvent(f *testing.F) {
	for _, seed := range []string{
		`{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","removeAnalysis":true}`,
		`{"value":{"repositoryCode":"song.ca","studyId":7,"analysisId":"A","remove":true}}`,
		`{"analysisId":"A","studyId":"S","state":"PUBLISHED","songServerId":"song.ca","analysis":{"a":[1,2]}}`,
		`{"systemId":"L1","organization":"O","categoryId":3,"categoryAlias":"donor","data":{}}`,
		`{"a":"\ud800","analysisId":"\u0041"}`, `[[[[`, `{"a":1e999}`, "\xff", `null`, `{"analysisId":"A","analysisId":"B"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		e, rejection := event.NewParser(protocol.EventFormats()).Parse(data)
		if rejection != nil {
			if rejection.Message == "" || e.Format != "" {
				t.Fatalf("rejection %+v beside event %+v", rejection, e)
			}
			if strings.Contains(rejection.Message, "not valid JSON") && json.Valid(data) {
				t.Fatal("valid JSON is refused as broken")
			}
			return
		}
		if !json.Valid(data) {
			t.Fatalf("broken JSON is understood as %+v", e)
		}
		if e.Remove && (e.RecordID == "" || e.Organization == "" || e.Format != event.FormatMaestro) {
			t.Fatalf("removal of %+v", e)
		}
		r := core.Request{
			Kind: core.KindIndex, Scope: e.Scope(), Repository: "r", Organization: e.Organization,
			RecordID: e.RecordID, JobID: "j",
		}
		if err := r.Validate(); err != nil {
			t.Fatalf("%+v makes a bad Request: %v", e, err)
		}
		mayRun := e.Organization != "" && (e.RecordID == "" || e.Format == "lyric")
		if err := core.ValidID("organization", e.Organization); mayRun && err != nil {
			t.Fatalf("%+v makes a bad run: %v", e, err)
		}
	})
}
