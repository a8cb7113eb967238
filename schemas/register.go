package schemas

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"tutti/internal/core"
)

// propertyExperiment is what every dynamic schema describes and requires.
const propertyExperiment = "experiment"

// registerTimeout bounds the writing of a registration, which goes on when its client has left: a version that was
// stored without this process knowing would be missing from its answers.
const registerTimeout = 30 * time.Second

// Register adds a version of an analysis type and gives it, rendered. body is that of a registration (CONTRACT section
// 7). CodeInvalid with ErrorID malformed.parameter, illegal.analysis.type.name or malformed.json.schema and Violations
// when the body is at fault.
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

// compiles tells what is wrong with a dynamic schema that is rendered.
func compiles(dynamic string) error {
	rendered, err := render(dynamic)
	if err != nil {
		return core.WrapError(core.CodeInternal, "rendering a schema", err)
	}
	r, found, err := compile(string(rendered))
	if err != nil {
		return core.WrapError(core.CodeInternal, "compiling a schema", err)
	}
	if found == nil {
		found = experimentFault(r)
	}
	if found != nil {
		return found.within("/schema").invalid(errorIDMalformedSchema, "the registration is not valid")
	}
	return nil
}

// experimentFault reports whether the rules of a whole schema take something else than an object for an experiment. The
// meta-schema cannot say it: it does not know where a $ref leads.
func experimentFault(r *rules) *faults {
	if onlyObjects(r.schema.Properties[propertyExperiment], map[*jsonschema.Schema]bool{}) {
		return nil
	}
	return oneFault("/properties/"+propertyExperiment, "type",
		`must be the schema of an object: its type, or the type of what its $ref leads to, must be "object"`)
}

// add stores a registration.
func (s *Service) add(ctx context.Context, given registration) (core.AnalysisType, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), registerTimeout)
	defer cancel()
	// The clock of a database is coarser than Go's; the answer must be what later answers say.
	at := s.cfg.Now().UTC().Truncate(time.Millisecond)
	added, err := s.store.AddAnalysisType(ctx, given.name, func(previous *core.AnalysisType) (core.AnalysisType, error) {
		next := core.AnalysisType{
			Name: given.name, Version: 1, CreatedAt: at, Options: given.options, Schema: json.RawMessage(given.schema),
		}
		if previous != nil {
			next.Version = previous.Version + 1
			next.Options = merged(given.options, previous.Options)
		}
		return next, nil
	})
	s.forget(given.name)
	if err == nil {
		s.quarantine.release(added.Name, added.Version)
		return added, nil
	}
	// Whether it was stored is not known, so that what this process knows of the latest version may be wrong from now on.
	if !s.shared.Swap(true) {
		s.cfg.Logger.WarnContext(ctx, "what is the latest version is read from the store from now on: a registration failed there")
	}
	return core.AnalysisType{}, err
}

// merged gives the options with those of the previous version where none was given.
func merged(given, previous core.AnalysisOptions) core.AnalysisOptions {
	if given.FileTypes == nil {
		given.FileTypes = previous.FileTypes
	}
	if given.ExternalValidations == nil {
		given.ExternalValidations = previous.ExternalValidations
	}
	return given
}

// baseProperties is the base schema, required of every analysis (CONTRACT section 7), without its outer braces. A null
// version is what Song's clients send for none.
const baseProperties = `"studyId":{"type":"string"},` +
	`"analysisType":{"type":"object","required":["name"],"properties":{` +
	`"name":{"type":"string"},"version":{"type":["integer","null"],"minimum":1}}},` +
	`"files":{"type":"array","minItems":1,"items":{"type":"object",` +
	`"required":["dataType","fileName","fileSize","fileType","fileAccess","fileMd5sum"],"properties":{` +
	`"dataType":{"type":"string"},"fileName":{"type":"string"},"fileSize":{"type":"number","minimum":0},` +
	`"fileType":{"type":"string"},"fileAccess":{"type":"string","enum":["open","controlled"]},` +
	`"fileMd5sum":{"type":"string","pattern":"^[a-fA-F0-9]{32}$"}}}}`

// baseSchema is the base schema alone.
const baseSchema = `{"type":"object","properties":{` + baseProperties + `},"required":["studyId","analysisType","files"]}`

func baseRequired() []string { return []string{"studyId", "analysisType", "files"} }

// render merges the base schema into a dynamic one. What the dynamic schema says stays as it is written, in its order.
func render(dynamic string) ([]byte, error) {
	tree, err := parse(dynamic)
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, len(dynamic)+len(baseSchema))
	out = append(out, '{')
	for i := range tree.members() {
		m := &tree.members()[i]
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendString(out, m.name), ':')
		switch {
		case m.name == "properties" && m.value.kind == kindObject:
			out = renderProperties(out, dynamic, &m.value)
		case m.name == "required" && m.value.kind == kindArray:
			out = renderRequired(out, dynamic, &m.value)
		default:
			out = append(out, dynamic[m.value.from:m.value.to]...)
		}
	}
	return append(out, '}'), nil
}

func renderProperties(out []byte, dynamic string, own *value) []byte {
	out = append(append(out, '{'), baseProperties...)
	if len(own.members()) > 0 {
		out = append(append(out, ','), dynamic[own.from+1:own.to]...)
		return out
	}
	return append(out, '}')
}

func renderRequired(out []byte, dynamic string, own *value) []byte {
	out = append(out, '[')
	for i, name := range baseRequired() {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendString(out, name)
	}
	for i := range own.items() {
		item := &own.items()[i]
		if !slices.Contains(baseRequired(), item.text) {
			out = append(append(out, ','), dynamic[item.from:item.to]...)
		}
	}
	return append(out, ']')
}
