package graphql

import (
	"errors"

	"github.com/vektah/gqlparser/v2/gqlerror"
)

// introspectionDisabled is in extensions.validationErrorCode if introspection is off: federating servers check for it.
const introspectionDisabled = "INTROSPECTION_DISABLED"

// errorsOf converts errors of the parser or of validation rules.
func errorsOf(err error, code string) []*gqlError {
	var list gqlerror.List
	if one, ok := errors.AsType[*gqlerror.Error](err); ok {
		list = gqlerror.List{one}
	} else if !errors.As(err, &list) {
		return []*gqlError{{message: "the query cannot be parsed", code: code}}
	}
	var faults []*gqlError
	for _, e := range list {
		if len(faults) == maxErrors {
			break
		}
		f := &gqlError{message: e.Message, code: code}
		if e.Rule == ruleNoIntrospection {
			f.detail = introspectionDisabled
		}
		if len(e.Locations) > 0 && e.Locations[0].Line > 0 {
			f.line, f.column = e.Locations[0].Line, e.Locations[0].Column
		}
		faults = append(faults, f)
	}
	return faults
}
