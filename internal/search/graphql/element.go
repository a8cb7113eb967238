package graphql

import (
	"github.com/vektah/gqlparser/v2/ast"

	"tutti/internal/search/graphql/output"
)

// elements is the range of a document's nested elements to return, in the document's order. total counts all elements.
type elements struct {
	// offset is the number of elements to skip, limit the maximum number to return, -1 for no limit.
	offset, limit int
}

// allElements selects all elements.
func allElements() elements { return elements{limit: -1} }

// elements reads the arguments of the hits of a nested field.
func (p selectionBuilder) elements(hits *ast.Field) elements {
	e := allElements()
	args := p.op.Arguments(hits)
	var bad *output.Error
	if e.offset, bad = args.Int("offset", 0); bad == nil && e.offset < 0 {
		bad = args.Invalid("offset", "is negative")
	}
	if args.Value("first").Exists() && bad == nil {
		if e.limit, bad = args.Int("first", 0); bad == nil && e.limit < 0 {
			bad = args.Invalid("first", "is negative")
		}
	}
	if bad != nil {
		p.reject(bad)
	}
	return e
}

// window returns the first index and the number of the selected elements of n.
func (e elements) window(n int) (from, count int) {
	from = min(e.offset, n)
	count = n - from
	if e.limit >= 0 {
		count = min(count, e.limit)
	}
	return from, count
}
