package schemas

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/schemas/jsontree"
	"tutti/schemas/validation"
	"tutti/schemas/violation"
)

// registerTimeout bounds the storing of a registration. Storing continues after the client has disconnected: otherwise a version could
// be stored that this process does not know.
const registerTimeout = 30 * time.Second

// Register adds a version of an analysis type and returns it rendered. body is a registration (CONTRACT section 7). CodeInvalid
// with Violations and ErrorID malformed.parameter, illegal.analysis.type.name, schema.violation (of the meta-schema) or
// malformed.json.schema for an invalid body.
func (s *Service) Register(ctx context.Context, body []byte) ([]byte, error) {
	given, err := s.parseRegistration(body)
	if err != nil {
		return nil, err
	}
	if err := compiles(given.schema); err != nil {
		return nil, err
	}
	added, err := s.add(ctx, given)
	if err != nil {
		return nil, err
	}
	s.cfg.Logger.InfoContext(ctx, "analysis type registered", "name", added.Name, "version", added.Version)
	return s.element(added, false)
}

// Fault returns why a dynamic schema could not be registered now, although it was before; "" if it could.
func Fault(dynamic []byte) string {
	if err := compiles(string(dynamic)); err != nil {
		if e, ok := errors.AsType[*core.Error](err); ok && len(e.Violations) > 0 {
			return strings.TrimPrefix(e.Violations[0].Pointer, "/schema") + " " + e.Violations[0].Message
		}
		return core.MessageOf(err)
	}
	return ""
}

// compiles returns an error unless the rendered schema compiles.
func compiles(dynamic string) error {
	rendered, err := render(dynamic)
	if err != nil {
		return core.WrapError(core.CodeInternal, "rendering a schema", err)
	}
	compiled, found, err := validation.Compile(string(rendered))
	if err != nil {
		return core.WrapError(core.CodeInternal, "compiling a schema", err)
	}
	if found == nil && compiled.ExcludesObjects(experiment) {
		found = violation.NewList("/properties/"+experiment, "type", "accepts no object, but experiment is an object in every analysis")
	}
	if found != nil {
		for i := range found.Violations { // as they were before renderAround
			v := &found.Violations[i]
			if within, ok := strings.CutPrefix(v.Pointer, "/properties/"+experiment+"/allOf/0"); ok && strings.Contains(string(rendered), `"`+experiment+`":`+around) {
				v.Pointer = "/properties/" + experiment + within
			}
		}
		return found.Within("/schema").Invalid(errorIDMalformedSchema, "the registration is not valid")
	}
	return nil
}

// add stores a registration.
func (s *Service) add(ctx context.Context, given registration) (datamodel.AnalysisType, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), registerTimeout)
	defer cancel()
	// The clock of a database is coarser than Go's; the response must equal later ones.
	at := s.cfg.Now().UTC().Truncate(time.Millisecond)
	added, err := s.store.AddAnalysisType(ctx, given.name, func(previous *datamodel.AnalysisType) (datamodel.AnalysisType, error) {
		next := datamodel.AnalysisType{
			Name: given.name, Version: 1, CreatedAt: at, Options: given.options, Schema: json.RawMessage(given.schema),
		}
		if previous != nil {
			next.Version = previous.Version + 1
			next.Options = merged(given.options, previous.Options)
		}
		return next, nil
	})
	s.forget(given.name)
	s.versions.latest.Invalidate(given.name)
	if err == nil {
		s.versions.quarantine.release(added.Name, added.Version)
		return added, nil
	}
	// It is unknown whether the version was stored, so the latest version that this process knows may be wrong.
	if !s.versions.shared.Swap(true) {
		s.cfg.Logger.WarnContext(ctx, "storing a registration failed: the latest version is read from the store from now on")
	}
	return datamodel.AnalysisType{}, err
}

// merged returns the options, with those of the previous version where none was set.
func merged(given, previous datamodel.AnalysisOptions) datamodel.AnalysisOptions {
	if given.FileTypes == nil {
		given.FileTypes = previous.FileTypes
	}
	if given.ExternalValidations == nil {
		given.ExternalValidations = previous.ExternalValidations
	}
	return given
}

// baseProperties are the properties of the base schema, which every analysis must match (CONTRACT section 7), without braces. version
// may be null, because Song's clients send null for no version.
const baseProperties = `"studyId":{"type":"string"},` +
	`"analysisType":{"type":"object","required":["name"],"properties":{` +
	`"name":{"type":"string"},"version":{"type":["integer","null"],"minimum":1}}},` +
	`"files":{"type":"array","minItems":1,"items":{"type":"object",` +
	`"required":["dataType","fileName","fileSize","fileType","fileAccess","fileMd5sum"],"properties":{` +
	`"dataType":{"type":"string"},"fileName":{"type":"string","pattern":"^[A-Za-z0-9_.\\-\\[\\]()]+$"},` +
	`"fileSize":{"type":"integer","minimum":0,"maximum":9223372036854775807},` +
	`"fileType":{"type":"string"},"fileAccess":{"type":"string","enum":["open","controlled"]},` +
	`"fileMd5sum":{"type":"string","pattern":"^[a-fA-F0-9]{32}$"},"info":{"type":"object"}}}}`

// baseSchema is the base schema, which render merges into every registered schema.
const baseSchema = `{"type":"object","properties":{` + baseProperties + `},"required":["studyId","analysisType","files"]}`

func baseRequired() []string { return []string{"studyId", "analysisType", "files"} }

// render merges the base schema into dynamic, a registered schema. It keeps the text and the order of dynamic's members.
func render(dynamic string) ([]byte, error) {
	tree, err := jsontree.Parse(dynamic)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(dynamic)+len(baseSchema))
	out = append(out, '{')
	for i := range tree.Members() {
		m := &tree.Members()[i]
		if i > 0 {
			out = append(out, ',')
		}
		out = append(jsontree.AppendString(out, m.Name), ':')
		switch {
		case m.Name == "properties" && m.Value.Kind == jsontree.KindObject:
			out = renderProperties(out, dynamic, &m.Value, validation.SiblingsCount(&tree))
		case m.Name == "required" && m.Value.Kind == jsontree.KindArray:
			out = renderRequired(out, dynamic, &m.Value)
		default:
			out = append(out, dynamic[m.Value.From:m.Value.To]...)
		}
	}
	return append(out, '}'), nil
}

// renderProperties adds the properties of the base schema, and that experiment is an object, which the index requires.
func renderProperties(out []byte, dynamic string, own *jsontree.Value, siblings bool) []byte {
	out = append(append(out, '{'), baseProperties...)
	for i := range own.Members() {
		m := &own.Members()[i]
		out = append(jsontree.AppendString(append(out, ','), m.Name), ':')
		if m.Name == experiment {
			out = renderObject(out, dynamic, &m.Value, siblings)
		} else {
			out = append(out, dynamic[m.Value.From:m.Value.To]...)
		}
	}
	return append(out, '}')
}

// experiment is the property that every analysis type describes.
const experiment = "experiment"

// renderObject adds "type": "object" to a schema. siblings is set if the draft applies keywords beside a $ref.
func renderObject(out []byte, dynamic string, own *jsontree.Value, siblings bool) []byte {
	switch {
	case own.Kind == jsontree.KindBool && own.Text == "true":
		return append(out, `{"type":"object"}`...)
	case own.Kind == jsontree.KindObject:
		if !isInline(own, siblings) {
			return renderAround(out, dynamic, own)
		}
		out = append(out, `{"type":"object"`...)
		for i := range own.Members() {
			if m := &own.Members()[i]; m.Name != "type" {
				out = append(jsontree.AppendString(append(out, ','), m.Name), ':')
				out = append(out, dynamic[m.Value.From:m.Value.To]...)
			}
		}
		return append(out, '}')
	}
	return append(out, dynamic[own.From:own.To]...)
}

// isInline reports whether the type of a schema can be replaced by object: its draft applies a type beside its keywords, and its own type
// includes objects.
func isInline(own *jsontree.Value, siblings bool) bool {
	if own.Member("$ref") != nil && !siblings {
		return false
	}
	types := own.Member("type")
	return types == nil || types.Text == "object" || slices.ContainsFunc(types.Items(), func(t jsontree.Value) bool { return t.Text == "object" })
}

// around begins what renderAround writes.
const around = `{"type":"object","allOf":[`

// renderAround writes a schema around own, which keeps what others may refer to or show.
func renderAround(out []byte, dynamic string, own *jsontree.Value) []byte {
	out = append(append(append(out, around...), dynamic[own.From:own.To]...), ']')
	for i := range own.Members() {
		switch m := &own.Members()[i]; m.Name {
		case "definitions", "title", "description":
			out = append(jsontree.AppendString(append(out, ','), m.Name), ':')
			out = append(out, dynamic[m.Value.From:m.Value.To]...)
		}
	}
	return append(out, '}')
}

func renderRequired(out []byte, dynamic string, own *jsontree.Value) []byte {
	out = append(out, '[')
	for i, name := range baseRequired() {
		if i > 0 {
			out = append(out, ',')
		}
		out = jsontree.AppendString(out, name)
	}
	for i := range own.Items() {
		item := &own.Items()[i]
		if !slices.Contains(baseRequired(), item.Text) {
			out = append(append(out, ','), dynamic[item.From:item.To]...)
		}
	}
	return append(out, ']')
}
