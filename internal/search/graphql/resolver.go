package graphql

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/search/graphql/execute"
	"tutti/internal/search/graphql/output"
)

// resolver plans the fields that are not read from documents.
type resolver struct {
	service *Service
	served  *servedCatalogue
}

// resolve plans a field of the query, the mutation or the catalogue.
func (s *resolver) resolve(ctx context.Context, p *execute.Planner, f *ast.Field) (execute.Value, *output.Error) {
	switch f.Name {
	case "__schema", "__type":
		return s.meta(p, f), nil
	case "sets":
		return s.sets(ctx, p, f)
	case "saveSet":
		return s.saveSet(ctx, p, f)
	case "network":
		return s.network(ctx, p, f)
	case "hasValidConfig":
		return s.validConfig(p, f), nil
	case "configs":
		return s.configs(p, f), nil
	case "mapping":
		return s.mapping, nil
	default:
		return execute.Null, nil
	}
}

// meta writes an introspection field.
func (s *resolver) meta(p *execute.Planner, f *ast.Field) execute.Value {
	return func(w *execute.Writer) { w.Raw(s.served.schema.AppendMeta(nil, f, p.Variables(), p.Fields)) }
}

// configs plans the display configuration of a catalogue.
func (s *resolver) configs(p *execute.Planner, f *ast.Field) execute.Value {
	fields := s.served.fields()
	raw := s.served.config()
	return p.Object(f, func(f *ast.Field) (execute.Value, *output.Error) {
		if f.Name == "extended" {
			if args := p.Arguments(f); args.Raw("fieldNames") != nil {
				wanted := args.Texts("fieldNames")
				fields = slices.DeleteFunc(slices.Clone(fields), func(d fieldDescription) bool { return !slices.Contains(wanted, d.FieldName) })
			}
			if fields == nil {
				fields = []fieldDescription{}
			}
			return execute.Raw(toJSON(fields)), nil
		}
		one := p.Member(f)
		return func(w *execute.Writer) { w.Documents.OnlyField(one, raw) }, nil
	})
}

// mapping writes the index mapping of the catalogue's fields.
func (s *resolver) mapping(w *execute.Writer) {
	rendered, err := s.served.model.Root().Render()
	if err != nil {
		w.NullWithError(output.ErrorOf(err))
		return
	}
	raw := objectOf(rendered)["properties"]
	if raw == nil {
		raw = json.RawMessage("{}")
	}
	w.Raw(raw)
}

// validConfig writes whether the catalogue has the documentType and the index of the arguments.
func (s *resolver) validConfig(p *execute.Planner, f *ast.Field) execute.Value {
	args := p.Arguments(f)
	d := s.served.model.Definition()
	valid := args.Value("documentType").String() == d.DocumentType && args.Value("index").String() == d.Index
	return execute.Raw(strconv.AppendBool(nil, valid))
}
