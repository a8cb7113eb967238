package schemas

import (
	"math/big"
	"strconv"
	"strings"
)

// bound is a number of a schema. Comparing goes by float64 where that decides and exactly where it does not.
type bound struct {
	exact *big.Rat
	near  float64
	text  string
}

func newBound(r *big.Rat) *bound {
	if r == nil {
		return nil
	}
	near, _ := r.Float64()
	text := r.RatString()
	if !r.IsInt() {
		text = strconv.FormatFloat(near, 'g', -1, 64)
	}
	return &bound{exact: r, near: near, text: text}
}

func exactly(literal string) *big.Rat {
	r, ok := new(big.Rat).SetString(literal)
	if !ok {
		return new(big.Rat) // the parser lets no such literal through
	}
	return r
}

// compare is negative, zero or positive as the literal is less than, equal to or greater than b. Rounding keeps order,
// so that two different float64 decide; equal ones need the exact values.
func (b *bound) compare(literal string) int {
	f, err := strconv.ParseFloat(literal, 64)
	switch {
	case err == nil && f < b.near:
		return -1
	case err == nil && f > b.near:
		return 1
	case err == nil && b.exact.IsInt() && plainInteger(literal) && len(literal) <= 15:
		return 0
	default:
		return exactly(literal).Cmp(b.exact)
	}
}

// divides tells whether the literal is a whole multiple of b.
func (b *bound) divides(literal string) bool {
	return new(big.Rat).Quo(exactly(literal), b.exact).IsInt()
}

// plainInteger tells whether a literal is written without fraction and exponent.
func plainInteger(literal string) bool { return !strings.ContainsAny(literal, ".eE") }

// integral tells whether a literal is a whole number; 1.0 is one.
func integral(literal string) bool {
	return plainInteger(literal) || exactly(literal).IsInt()
}

// canonicalNumber gives equal texts for equal numbers.
func canonicalNumber(literal string) string {
	if plainInteger(literal) && literal != "-0" {
		return literal
	}
	return exactly(literal).RatString()
}
