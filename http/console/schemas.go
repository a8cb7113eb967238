package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"tutti/http/api"
	"tutti/http/console/diff"
	"tutti/http/console/mark"
	"tutti/http/metadata"
	"tutti/internal/core"
	"tutti/internal/core/datamodel"
)

// maxTypes is the number of versions of analysis types that a page lists.
const maxTypes = 1000

// typeVersion is one version of an analysis type.
type typeVersion struct {
	Version   int
	CreatedAt time.Time
	FileTypes []string
}

// analysisType is one analysis type with its versions, the latest first.
type analysisType struct {
	Name     string
	Versions []typeVersion
}

// schemasView is the content of the list of analysis types.
type schemasView struct {
	Base   string
	Now    time.Time
	System bool
	Types  []analysisType
	// From is the analysis type whose latest version Registration begins with, empty for none.
	From, Registration string
	// Failed is why Registration was not registered, nil if it was not tried; Lines have its violations.
	Failed *core.Error
	Lines  []mark.Line
}

// newRegistration is what the form to register an analysis type shows at first.
const newRegistration = `{
  "name": "…",
  "schema": {
    "type": "object",
    "required": ["experiment"],
    "properties": {
      "experiment": {"type": "object"}
    }
  }
}`

// analysisTypes lists the analysis types, all or the one with a name.
func (s *schemaPages) analysisTypes(ctx context.Context, name string) ([]analysisType, error) {
	query := datamodel.AnalysisTypeQuery{Sort: []string{"name", "version"}, Limit: maxTypes}
	if name != "" {
		query.Names = []string{name}
	}
	var body bytes.Buffer
	err := s.ports.AnalysisTypes.List(ctx, query, true, true, func(piece []byte) error {
		_, err := body.Write(piece)
		return err
	})
	if err != nil {
		return nil, err
	}
	var types []analysisType
	for _, one := range gjson.GetBytes(body.Bytes(), "resultSet").Array() {
		v := typeVersion{Version: int(one.Get("version").Int()), CreatedAt: one.Get("createdAt").Time()}
		for _, t := range one.Get("options.fileTypes").Array() {
			v.FileTypes = append(v.FileTypes, t.String())
		}
		name := one.Get("name").String()
		at := slices.IndexFunc(types, func(t analysisType) bool { return t.Name == name })
		if at < 0 {
			types, at = append(types, analysisType{Name: name}), len(types)
		}
		types[at].Versions = append(types[at].Versions, v)
	}
	for i := range types {
		slices.Reverse(types[i].Versions)
	}
	return types, nil
}

func (s *schemaPages) schemas(w http.ResponseWriter, r *http.Request) error {
	v, err := s.readSchemas(r)
	if err != nil {
		return err
	}
	v.Registration = newRegistration
	if from := r.URL.Query().Get("from"); from != "" && v.System {
		if v.Registration, err = s.registrationOf(r.Context(), from); err != nil {
			return err
		}
		v.From = from
	}
	s.render(w, r, http.StatusOK, "schemas", page{Title: "Schemas", Active: "schemas", Content: v})
	return nil
}

func (s *schemaPages) readSchemas(r *http.Request) (schemasView, error) {
	types, err := s.analysisTypes(r.Context(), "")
	return schemasView{Base: s.base, Now: s.now(), System: api.RequireSystem(r) == nil, Types: types}, err
}

// registrationOf returns the registration of the latest version of an analysis type.
func (s *schemaPages) registrationOf(ctx context.Context, name string) (string, error) {
	body, err := s.readType(ctx, name, 0)
	if err != nil {
		return "", err
	}
	given := struct {
		Name    string          `json:"name"`
		Options json.RawMessage `json:"options,omitempty"`
		Schema  json.RawMessage `json:"schema"`
	}{Name: name, Schema: []byte(gjson.GetBytes(body, "schema").Raw)}
	if options := gjson.GetBytes(body, "options"); options.IsObject() {
		given.Options = []byte(options.Raw)
	}
	return indented(given)
}

// registerType registers a version of an analysis type. An invalid registration is shown again with its violations.
func (s *schemaPages) registerType(w http.ResponseWriter, r *http.Request) error {
	f, err := readForm(r)
	if err != nil {
		return err
	}
	registration := strings.TrimSpace(f.Get("registration"))
	registered, err := s.ports.AnalysisTypes.Register(r.Context(), []byte(registration))
	if err != nil {
		var failed *core.Error
		if !errors.As(err, &failed) || failed.Code != core.CodeInvalid && failed.Code != core.CodeConflict {
			return err
		}
		v, err := s.readSchemas(r)
		if err != nil {
			return err
		}
		v.Registration, v.Failed, v.Lines = registration, failed, mark.Lines(registration, failed.Violations, "the registration")
		s.render(w, r, http.StatusUnprocessableEntity, "schemas", page{Title: "Schemas", Active: "schemas", Content: v})
		return nil
	}
	s.see(w, s.link("schemas", gjson.GetBytes(registered, "name").String()), "registered")
	return nil
}

// schemaView is the content of the page of an analysis type.
type schemaView struct {
	Base   string
	Now    time.Time
	System bool
	analysisType
	// Version is the version that is shown, Compared another one that it is compared with, 0 for none.
	Version, Compared int
	Schema            string
	Diff              []diff.Line
	Changed           bool
	Studies           []string
	Tried             *tried
	// Study and Payload are what was tried.
	Study, Payload string
}

// tried is the result of a try.
type tried struct {
	Valid   bool
	Said    string
	Hint    string
	Against datamodel.AnalysisTypeRef
	Lines   []mark.Line
	Count   int
}

func (s *schemaPages) schema(w http.ResponseWriter, r *http.Request) error {
	v, err := s.readSchema(r)
	if err != nil {
		return err
	}
	v.Payload = `{
  "studyId": "…",
  "analysisType": {"name": ` + strconv.Quote(v.Name) + `}
}`
	s.render(w, r, http.StatusOK, "schema", page{Title: "Schema " + v.Name, Active: "schemas", Content: v})
	return nil
}

// readSchema returns the page of an analysis type.
func (s *schemaPages) readSchema(r *http.Request) (schemaView, error) {
	name, err := api.PathParam(r, "name", "name")
	if err != nil {
		return schemaView{}, err
	}
	types, err := s.analysisTypes(r.Context(), name)
	if err != nil {
		return schemaView{}, err
	}
	if len(types) == 0 {
		return schemaView{}, &core.Error{Code: core.CodeNotFound, Message: "there is no such analysis type", Hint: "the list of schemas has those that are registered"}
	}
	v := schemaView{Base: s.base, Now: s.now(), System: api.RequireSystem(r) == nil, analysisType: types[0], Version: types[0].Versions[0].Version}
	q := r.URL.Query()
	if n, err := strconv.Atoi(q.Get("version")); err == nil {
		v.Version = n
	}
	if v.Schema, err = s.schemaText(r.Context(), name, v.Version); err != nil {
		return schemaView{}, err
	}
	if n, err := strconv.Atoi(q.Get("compare")); err == nil && n > 0 {
		before, err := s.schemaText(r.Context(), name, n)
		if err != nil {
			return schemaView{}, err
		}
		v.Compared, v.Diff = n, diff.Lines(before, v.Schema)
		v.Changed = diff.Changed(v.Diff)
	}
	if ids, err := s.ports.Studies.Studies(r.Context()); err == nil {
		v.Studies = ids
	}
	return v, nil
}

// readType returns the body of a version of an analysis type without the base schema, of the latest for version 0.
func (s *schemaPages) readType(ctx context.Context, name string, version int) ([]byte, error) {
	var body bytes.Buffer
	err := s.ports.AnalysisTypes.Type(ctx, name, version, true, func(piece []byte) error {
		_, err := body.Write(piece)
		return err
	})
	return body.Bytes(), err
}

// schemaText returns a version of a schema, indented, with members in the order of their names, so that a diff shows only changes.
func (s *schemaPages) schemaText(ctx context.Context, name string, version int) (string, error) {
	body, err := s.readType(ctx, name, version)
	if err != nil {
		return "", err
	}
	var parsed any
	if err := json.Unmarshal([]byte(gjson.GetBytes(body, "schema").Raw), &parsed); err != nil {
		return "", core.WrapError(core.CodeInternal, "the stored schema cannot be read", err)
	}
	return indented(parsed)
}

// indented returns the JSON of a value for people to read; it is not indented if it nests too deeply.
func indented(value any) (string, error) {
	var compact bytes.Buffer
	encoder := json.NewEncoder(&compact)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", core.WrapError(core.CodeInternal, "the stored schema cannot be read", err)
	}
	text, _ := readable(bytes.TrimSpace(compact.Bytes()))
	return text, nil
}

// tryPayload validates a payload without storing it, and shows each violation at its line.
func (s *schemaPages) tryPayload(w http.ResponseWriter, r *http.Request) error {
	f, err := readForm(r)
	if err != nil {
		return err
	}
	v, err := s.readSchema(r)
	if err != nil {
		return err
	}
	v.Study, v.Payload = f.Get("study"), f.Get("payload")
	if err := core.ValidID("study", v.Study); err != nil {
		return err
	}
	// External validations are called with the study, so a try needs what a submission does.
	if err := api.RequireWrite(r, v.Study); err != nil {
		return err
	}
	if err := metadata.AcquirePayload(r, s.ports.Payloads, []byte(v.Payload)); err != nil {
		return err
	}
	against, err := s.validator.Validate(r.Context(), v.Study, v.Payload)
	v.Tried = &tried{Valid: err == nil, Against: against}
	if err != nil {
		var violated *core.Error
		if !errors.As(err, &violated) || violated.Code != core.CodeInvalid && violated.Code != core.CodeNotFound && violated.Code != core.CodeConflict {
			return err
		}
		v.Tried.Said, v.Tried.Hint, v.Tried.Count = violated.Message, violated.Hint, len(violated.Violations)
		v.Tried.Lines = mark.Lines(v.Payload, violated.Violations, "the analysis")
	}
	s.render(w, r, http.StatusOK, "schema", page{Title: "Schema " + v.Name, Active: "schemas", Content: v})
	return nil
}
