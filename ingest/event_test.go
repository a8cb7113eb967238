package ingest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tutti/ingest"
	"tutti/internal/core"
)

func TestParseEvent(t *testing.T) {
	long := strings.Repeat("x", 512)
	for name, tt := range map[string]struct {
		body string
		want ingest.Event
	}{
		"maestro repository": {
			`{"repositoryCode":"song.ca"}`,
			ingest.Event{Format: ingest.FormatMaestro, Repository: "song.ca"},
		},
		"maestro organization": {
			`{"repositoryCode":"song.ca","studyId":"S"}`,
			ingest.Event{Format: ingest.FormatMaestro, Repository: "song.ca", Organization: "S"},
		},
		"maestro record": {
			`{"analysisId":"A","studyId":"S","repositoryCode":"song.ca","removeAnalysis":false}`,
			ingest.Event{Format: ingest.FormatMaestro, Repository: "song.ca", Organization: "S", RecordID: "A"},
		},
		"maestro removal": {
			`{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","removeAnalysis":true}`,
			ingest.Event{Format: ingest.FormatMaestro, Repository: "song.ca", Organization: "S", RecordID: "A", Remove: true},
		},
		"null is absent": {
			`{"repositoryCode":"song.ca","studyId":null,"analysisId":null,"removeAnalysis":null}`,
			ingest.Event{Format: ingest.FormatMaestro, Repository: "song.ca"},
		},
		"removal as Maestro 5 has it": {
			`{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","remove":true}`,
			ingest.Event{Format: ingest.FormatMaestro, Repository: "song.ca", Organization: "S", RecordID: "A", Remove: true},
		},
		"both names of a removal": {
			`{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","removeAnalysis":true,"remove":true}`,
			ingest.Event{Format: ingest.FormatMaestro, Repository: "song.ca", Organization: "S", RecordID: "A", Remove: true},
		},
		"Kafka's REST form": {
			`{"value":{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","remove":true}}`,
			ingest.Event{Format: ingest.FormatMaestro, Repository: "song.ca", Organization: "S", RecordID: "A", Remove: true},
		},
		"ids that are numbers": {
			`{"repositoryCode":"song.ca","studyId":17,"analysisId":4200000000000000001}`,
			ingest.Event{Format: ingest.FormatMaestro, Repository: "song.ca", Organization: "17", RecordID: "4200000000000000001"},
		},
		"empty is absent": {
			`{"repositoryCode":"song.ca","studyId":"","analysisId":""}`,
			ingest.Event{Format: ingest.FormatMaestro, Repository: "song.ca"},
		},
		"unknown members": {
			`{"repositoryCode":"song.ca","removeAnalyses":true,"` + strings.Repeat("x", 70) + `":1,"action":"x"}`,
			ingest.Event{Format: ingest.FormatMaestro, Repository: "song.ca", Unknown: []string{"removeAnalyses", strings.Repeat("x", 64)}},
		},
		"song": {
			`{"analysisId":"A","studyId":"S","state":"PUBLISHED","action":"PUBLISH","songServerId":"song.ca","analysis":{"analysisId":"B"}}`,
			ingest.Event{Format: "song", Servers: []string{"song.ca"}, Organization: "S", RecordID: "A"},
		},
		"song does not remove": {
			`{"analysisId":"A","studyId":"S","removeAnalysis":true}`,
			ingest.Event{Format: "song", Organization: "S", RecordID: "A"},
		},
		"lyric": {
			`{"action":"delete","categoryId":3,"categoryAlias":"donor","entityName":"donor","isValid":false,` +
				`"organization":"O","systemId":"L1","data":{"studyId":"S"}}`,
			ingest.Event{Format: "lyric", Servers: []string{"3", "donor"}, Organization: "O", RecordID: "L1", Deleted: &core.Part{Entity: "donor", Fields: map[string]string{"studyId": "S"}}},
		},
		"lyric, with fields of all kinds": {
			`{"action":"delete","entityName":"sample","organization":"O","systemId":"L1","data":{"a":"\u00e9","n":-1.50,"b":true,"l":["x"],"o":{},` +
				`"none":null,"long":"` + strings.Repeat("x", 300) + `"}}`,
			ingest.Event{Format: "lyric", Organization: "O", RecordID: "L1", Deleted: &core.Part{Entity: "sample", Fields: map[string]string{"a": "é", "n": "-1.50"}}},
		},
		"lyric, not deleted": {
			`{"action":"update","entityName":"sample","organization":"O","systemId":"L1","data":{"specimen_id":"S1"}}`,
			ingest.Event{Format: "lyric", Organization: "O", RecordID: "L1"},
		},
		"lyric without its data": {
			`{"action":"delete","entityName":"sample","organization":"O","systemId":"L1"}`,
			ingest.Event{Format: "lyric", Organization: "O", RecordID: "L1", Deleted: &core.Part{Entity: "sample"}},
		},
		"lyric with a category of text": {
			`{"systemId":"L1","organization":"O","categoryId":"3"}`,
			ingest.Event{Format: "lyric", Servers: []string{"3"}, Organization: "O", RecordID: "L1"},
		},
		"escapes": {
			`{"analysis\u0049d":"a\n\"b\u0000","studyId":"日本"}`,
			ingest.Event{Format: "song", Organization: "日本", RecordID: "a\n\"b\x00"},
		},
		"the longest id": {
			`{"analysisId":"` + long + `","studyId":"S"}`,
			ingest.Event{Format: "song", Organization: "S", RecordID: long},
		},
		"space around": {
			" \r\n\t{\"repositoryCode\" : \"song.ca\" } ",
			ingest.Event{Format: ingest.FormatMaestro, Repository: "song.ca"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, rejection := ingest.NewEventParser(formats()).Parse([]byte(tt.body))
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
	p := ingest.NewEventParser(map[core.RepositoryType]core.EventFormat{"fhir": {
		Name: "fhir", RecordID: "id", Organization: "managingOrganization", Servers: []core.EventMember{{Name: "server"}},
		Ignored: []string{"resourceType"},
	}})
	got, rejection := p.Parse([]byte(`{"resourceType":"Patient","id":"P","managingOrganization":"O","server":"s","more":1}`))
	want := ingest.Event{Format: "fhir", RecordID: "P", Organization: "O", Servers: []string{"s"}, Unknown: []string{"more"}}
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
		want ingest.Rejection
	}{
		"empty":         {``, ingest.Rejection{Message: "the event is empty"}},
		"broken":        {`{"analysisId":"A"`, ingest.Rejection{Message: "the event is not valid JSON"}},
		"two values":    {`{} {}`, ingest.Rejection{Message: "the event is not valid JSON"}},
		"text":          {`"analysisId"`, ingest.Rejection{Message: "the event is not a JSON object"}},
		"array":         {`[{"analysisId":"A"}]`, ingest.Rejection{Message: "the event is not a JSON object"}},
		"null":          {`null`, ingest.Rejection{Message: "the event is not a JSON object"}},
		"nothing known": {`{"record":{"analysisId":"A"}}`, ingest.Rejection{Message: "the event has none of the members repositoryCode, systemId and analysisId"}},
		"deep": {
			`{"analysis":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`,
			ingest.Rejection{Message: "the event is nested deeper than 500 levels"},
		},
		"a million brackets": {strings.Repeat("[", 1_000_000), ingest.Rejection{Message: "the event is nested deeper than 500 levels"}},
		"maestro analysis without study": {
			`{"repositoryCode":"song.ca","analysisId":"A"}`,
			ingest.Rejection{Member: "studyId", Message: "studyId is missing: analysisId needs it", RecordID: "A"},
		},
		"removal of an organization": {
			`{"repositoryCode":"song.ca","studyId":"S","removeAnalysis":true}`,
			ingest.Rejection{Member: "analysisId", Message: "analysisId is missing: removeAnalysis exists for one record only", Organization: "S"},
		},
		"two values inside each other": {
			`{"value":{"value":{"repositoryCode":"song.ca"}}}`,
			ingest.Rejection{Message: "the event has none of the members repositoryCode, systemId and analysisId"},
		},
		"removal that contradicts itself": {
			`{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","removeAnalysis":false,"remove":true}`,
			ingest.Rejection{Member: "remove", Message: "remove contradicts removeAnalysis", Organization: "S", RecordID: "A"},
		},
		"removal as text, by its new name": {
			`{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","remove":"yes"}`,
			ingest.Rejection{Member: "remove", Message: "remove must be true or false", Organization: "S", RecordID: "A"},
		},
		"removal of no record, by its new name": {
			`{"repositoryCode":"song.ca","studyId":"S","analysisId":"","remove":true}`,
			ingest.Rejection{Member: "analysisId", Message: "analysisId is missing: remove exists for one record only", Organization: "S"},
		},
		"removal of a repository": {
			`{"repositoryCode":"song.ca","removeAnalysis":true}`,
			ingest.Rejection{Member: "analysisId", Message: "analysisId is missing: removeAnalysis exists for one record only"},
		},
		"removal that is text": {
			`{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","removeAnalysis":"true"}`,
			ingest.Rejection{Member: "removeAnalysis", Message: "removeAnalysis must be true or false", Organization: "S", RecordID: "A"},
		},
		"removal that is a number": {
			`{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","removeAnalysis":1}`,
			ingest.Rejection{Member: "removeAnalysis", Message: "removeAnalysis must be true or false", Organization: "S", RecordID: "A"},
		},
		"removal said twice": {
			`{"repositoryCode":"song.ca","studyId":"S","analysisId":"A","removeAnalysis":false,"removeAnalysis":true}`,
			ingest.Rejection{Member: "removeAnalysis", Message: "removeAnalysis occurs twice", Organization: "S", RecordID: "A"},
		},
		"code that is a number": {
			`{"repositoryCode":1.5}`, ingest.Rejection{Member: "repositoryCode", Message: "repositoryCode must be a string"},
		},
		"empty code": {
			`{"repositoryCode":""}`, ingest.Rejection{Member: "repositoryCode", Message: "repositoryCode is empty"},
		},
		"run of a study that no path can name": {
			`{"repositoryCode":"song.ca","studyId":".."}`,
			ingest.Rejection{Member: "studyId", Message: "studyId must not be a relative path segment", Organization: ".."},
		},
		"song without study": {
			`{"analysisId":"A","songServerId":"song.ca"}`,
			ingest.Rejection{Member: "studyId", Message: "studyId is missing", RecordID: "A"},
		},
		"song with a number": {
			`{"analysisId":7,"studyId":"S"}`,
			ingest.Rejection{Member: "analysisId", Message: "analysisId must be a string", Organization: "S"},
		},
		"song with an object": {
			`{"analysisId":{"studyId":"T"},"studyId":"S"}`,
			ingest.Rejection{Member: "analysisId", Message: "analysisId must be a string", Organization: "S"},
		},
		"long id": {
			`{"analysisId":"` + strings.Repeat("x", 513) + `","studyId":"S"}`,
			ingest.Rejection{
				Member: "analysisId", Message: "analysisId has 513 bytes, the limit is 512", Organization: "S",
				RecordID: strings.Repeat("x", 513),
			},
		},
		"bytes that are no text": {
			"{\"analysisId\":\"a\xff\",\"studyId\":\"S\"}",
			ingest.Rejection{Member: "analysisId", Message: "analysisId is not valid UTF-8", Organization: "S", RecordID: "a\uFFFD"},
		},
		"server that is a number": {
			`{"analysisId":"A","studyId":"S","songServerId":3}`,
			ingest.Rejection{Member: "songServerId", Message: "songServerId must be a string", Organization: "S", RecordID: "A"},
		},
		"lyric without organization": {
			`{"systemId":"L1","studyId":"S"}`,
			ingest.Rejection{Member: "organization", Message: "organization is missing", RecordID: "L1"},
		},
		"lyric with a category that is neither": {
			`{"systemId":"L1","organization":"O","categoryId":true}`,
			ingest.Rejection{Member: "categoryId", Message: "categoryId must be a number or a string", Organization: "O", RecordID: "L1"},
		},
		"lyric with an alias that is a number": {
			`{"systemId":"L1","organization":"O","categoryAlias":3}`,
			ingest.Rejection{Member: "categoryAlias", Message: "categoryAlias must be a string", Organization: "O", RecordID: "L1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			event, rejection := ingest.NewEventParser(formats()).Parse([]byte(tt.body))
			if rejection == nil {
				t.Fatalf("understood as %+v", event)
			}
			if diff := cmp.Diff(tt.want, *rejection); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestNoActionOrStateRemoves: whatever an upstream says of a record's state, the record is asked for and never removed on
// its word.
func TestNoActionOrStateRemoves(t *testing.T) {
	song := func(action, state string) string {
		return fmt.Sprintf(`{"analysisId":"A","studyId":"S","action":%q,"state":%q,"songServerId":"song.ca","removeAnalysis":true}`,
			action, state)
	}
	for _, action := range []string{"CREATE", "PUBLISH", "UNPUBLISH", "SUPPRESS", "DELETE", "", "nonsense"} {
		for _, state := range []string{"PUBLISHED", "UNPUBLISHED", "SUPPRESSED", "", "nonsense"} {
			t.Run("song "+action+" "+state, func(t *testing.T) {
				wantIndexRequest(t, "song.ca", song(action, state))
			})
		}
	}
	for _, action := range []string{"insert", "update", "delete", ""} {
		for _, valid := range []string{"true", "false", "null"} {
			t.Run("lyric "+action+" "+valid, func(t *testing.T) {
				wantIndexRequest(t, "lyric", fmt.Sprintf(
					`{"systemId":"A","organization":"S","action":%q,"isValid":%s,"removeAnalysis":true}`, action, valid))
			})
		}
	}
}

// wantIndexRequest notifies a repository of one event and wants the record asked for, once.
func wantIndexRequest(t *testing.T, repository, body string) {
	t.Helper()
	w := newWorld(t, nil)
	got, err := w.service.Notify(t.Context(), repository, []byte(body), "", "r")
	if err != nil || got.Accepted != 1 {
		t.Fatalf("got %+v, %v", got, err)
	}
	want := []core.Request{{
		ID: "r", Kind: core.KindIndex, Scope: core.ScopeRecord, Repository: repository, Organization: "S", RecordID: "A",
		Cause: core.CauseWebhook, ReceivedAt: noon.UTC(),
	}}
	if diff := cmp.Diff(want, w.requests()); diff != "" {
		t.Error(diff)
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
		event, rejection := ingest.NewEventParser(formats()).Parse(data)
		if rejection != nil {
			if rejection.Message == "" || event.Format != "" {
				t.Fatalf("rejection %+v beside event %+v", rejection, event)
			}
			if strings.Contains(rejection.Message, "not valid JSON") && json.Valid(data) {
				t.Fatal("valid JSON is refused as broken")
			}
			return
		}
		if !json.Valid(data) {
			t.Fatalf("broken JSON is understood as %+v", event)
		}
		if event.Remove && (event.RecordID == "" || event.Organization == "" || event.Format != ingest.FormatMaestro) {
			t.Fatalf("removal of %+v", event)
		}
		r := core.Request{
			Kind: core.KindIndex, Scope: event.Scope(), Repository: "r", Organization: event.Organization,
			RecordID: event.RecordID, JobID: "j",
		}
		if err := r.Validate(); err != nil {
			t.Fatalf("%+v makes a bad Request: %v", event, err)
		}
		mayRun := event.Organization != "" && (event.RecordID == "" || event.Format == "lyric")
		if err := core.ValidID("organization", event.Organization); mayRun && err != nil {
			t.Fatalf("%+v makes a bad run: %v", event, err)
		}
	})
}
