package request

import (
	"errors"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"tutti/internal/search/graphql/output"
)

// introspectionDisabled is in extensions.validationErrorCode if introspection is off: federating servers check for it.
const introspectionDisabled = "INTROSPECTION_DISABLED"

// errorsOf converts errors of the parser or of validation rules.
func errorsOf(err error, code string) []*output.Error {
	var list gqlerror.List
	if one, ok := errors.AsType[*gqlerror.Error](err); ok {
		list = gqlerror.List{one}
	} else if !errors.As(err, &list) {
		return []*output.Error{{Message: "the query cannot be parsed", Code: code}}
	}
	var faults []*output.Error
	for _, e := range list {
		if len(faults) == output.MaxErrors {
			break
		}
		f := &output.Error{Message: e.Message, Code: code}
		if e.Rule == ruleNoIntrospection {
			f.Detail = introspectionDisabled
		}
		if len(e.Locations) > 0 && e.Locations[0].Line > 0 {
			f.Line, f.Column = e.Locations[0].Line, e.Locations[0].Column
		}
		faults = append(faults, f)
	}
	return faults
}
