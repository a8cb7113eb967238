package console

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"tutti/http/api"
	"tutti/http/console/diff"
	"tutti/http/metadata"
	"tutti/internal/core"
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
	Base  string
	Now   time.Time
	Types []analysisType
}

// analysisTypes lists the analysis types, all or the one with a name.
func (s *Surface) analysisTypes(ctx context.Context, name string) ([]analysisType, error) {
	query := core.AnalysisTypeQuery{Sort: []string{"name", "version"}, Limit: maxTypes}
	if name != "" {
		query.Names = []string{name}
	}
	var body bytes.Buffer
	err := s.ports.Metadata.AnalysisTypes.List(ctx, query, true, true, func(piece []byte) error {
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
		slices.SortFunc(types[i].Versions, func(a, b typeVersion) int { return b.Version - a.Version })
	}
	return types, nil
}

func (s *Surface) schemas(w http.ResponseWriter, r *http.Request) error {
	types, err := s.analysisTypes(r.Context(), "")
	if err != nil {
		return err
	}
	v := schemasView{Base: s.base, Now: s.now(), Types: types}
	s.render(w, r, http.StatusOK, "schemas", page{Title: "Schemas", Active: "schemas", Content: v})
	return nil
}

// schemaView is the content of the page of an analysis type.
type schemaView struct {
	Base string
	Now  time.Time
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
	Against core.AnalysisTypeRef
	Lines   []markedLine
	Count   int
}

// markedLine is one line of a payload with its violations.
type markedLine struct {
	Number int
	Text   string
	Notes  []string
}

func (s *Surface) schema(w http.ResponseWriter, r *http.Request) error {
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
func (s *Surface) readSchema(r *http.Request) (schemaView, error) {
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
	v := schemaView{Base: s.base, Now: s.now(), analysisType: types[0], Version: types[0].Versions[0].Version}
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
	if ids, err := s.ports.Metadata.Studies.Studies(r.Context()); err == nil {
		v.Studies = ids
	}
	return v, nil
}

// schemaText returns a version of a schema, indented.
func (s *Surface) schemaText(ctx context.Context, name string, version int) (string, error) {
	var body bytes.Buffer
	err := s.ports.Metadata.AnalysisTypes.Type(ctx, name, version, true, func(piece []byte) error {
		_, err := body.Write(piece)
		return err
	})
	if err != nil {
		return "", err
	}
	var parsed any
	if err := json.Unmarshal([]byte(gjson.GetBytes(body.Bytes(), "schema").Raw), &parsed); err != nil {
		return "", core.WrapError(core.CodeInternal, "the stored schema cannot be read", err)
	}
	var text bytes.Buffer // members in the order of their names, so that a diff shows only changes
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(parsed); err != nil {
		return "", core.WrapError(core.CodeInternal, "the stored schema cannot be read", err)
	}
	return string(bytes.TrimSpace(text.Bytes())), nil
}

// tryPayload validates a payload without storing it, and shows each violation at its line.
func (s *Surface) tryPayload(w http.ResponseWriter, r *http.Request) error {
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
	if err := metadata.AcquirePayload(r, s.ports.Metadata.Payloads, []byte(v.Payload)); err != nil {
		return err
	}
	against, err := s.ports.Validator.Validate(r.Context(), v.Study, v.Payload)
	v.Tried = &tried{Valid: err == nil, Against: against}
	if err != nil {
		var violated *core.Error
		if !errors.As(err, &violated) || violated.Code != core.CodeInvalid && violated.Code != core.CodeNotFound && violated.Code != core.CodeConflict {
			return err
		}
		v.Tried.Said, v.Tried.Hint, v.Tried.Count = violated.Message, violated.Hint, len(violated.Violations)
		v.Tried.Lines = mark(v.Payload, violated.Violations)
	}
	s.render(w, r, http.StatusOK, "schema", page{Title: "Schema " + v.Name, Active: "schemas", Content: v})
	return nil
}
