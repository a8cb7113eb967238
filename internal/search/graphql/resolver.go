package graphql

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/search/graphql/output"
	"tutti/internal/search/graphql/plan"
)

// resolver plans the fields that are not read from documents.
type resolver struct {
	service *Service
	served  *servedCatalogue
}

// resolve plans a field of the query, the mutation or the catalogue.
func (s *resolver) resolve(ctx context.Context, p *plan.Planner, f *ast.Field) (plan.Value, *output.Error) {
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
		return plan.Null, nil
	}
}

// meta writes an introspection field.
func (s *resolver) meta(p *plan.Planner, f *ast.Field) plan.Value {
	return func(w *plan.Writer) { w.Raw(s.served.schema.AppendMeta(nil, f, p.Variables(), p.Fields)) }
}

// configs plans the display configuration of a catalogue.
func (s *resolver) configs(p *plan.Planner, f *ast.Field) plan.Value {
	fields := s.served.fields()
	raw := s.served.config()
	return p.Object(f, func(f *ast.Field) (plan.Value, *output.Error) {
		if f.Name == "extended" {
			if args := p.Arguments(f); args.Raw("fieldNames") != nil {
				wanted := args.Texts("fieldNames")
				fields = slices.DeleteFunc(slices.Clone(fields), func(d fieldDescription) bool { return !slices.Contains(wanted, d.FieldName) })
			}
			if fields == nil {
				fields = []fieldDescription{}
			}
			return plan.Raw(toJSON(fields)), nil
		}
		one := p.Member(f)
		return func(w *plan.Writer) { w.Documents.OnlyField(one, raw) }, nil
	})
}

// mapping writes the index mapping of the catalogue's fields.
func (s *resolver) mapping(w *plan.Writer) {
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
func (s *resolver) validConfig(p *plan.Planner, f *ast.Field) plan.Value {
	args := p.Arguments(f)
	d := s.served.model.Definition()
	valid := args.Value("documentType").String() == d.DocumentType && args.Value("index").String() == d.Index
	return plan.Raw(strconv.AppendBool(nil, valid))
}
