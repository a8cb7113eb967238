package graph

import "github.com/vektah/gqlparser/v2/ast"

// elements says which of a document's nested elements are given, in the document's order. The number of them counts all.
type elements struct {
	// offset is how many are left out before the first, most how many are given, -1 for the rest.
	offset, limit int
}

// allElements are all there are.
func allElements() elements { return elements{limit: -1} }

// elements reads the arguments of the hits of a nested field.
func (p selectionBuilder) elements(hits *ast.Field) elements {
	e := allElements()
	args := p.args(hits)
	var bad *gqlError
	if e.offset, bad = args.int("offset", 0); bad == nil && e.offset < 0 {
		bad = args.invalid("offset", "is negative")
	}
	if args.value("first").Exists() && bad == nil {
		if e.limit, bad = args.int("first", 0); bad == nil && e.limit < 0 {
			bad = args.invalid("first", "is negative")
		}
	}
	if bad != nil {
		p.reject(bad)
	}
	return e
}

// window returns the first and the number of those that are given of n.
func (e elements) window(n int) (from, count int) {
	from = min(e.offset, n)
	count = n - from
	if e.limit >= 0 {
		count = min(count, e.limit)
	}
	return from, count
}

// reject notes what the client is at fault with in the field that is being planned: nothing is executed.
func (x *execution) reject(bad *gqlError) {
	x.w.addError(bad)
	x.rejected = true
}
