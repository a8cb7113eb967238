package schemas

import (
	"strconv"
	"unicode/utf8"
)

func (c *check) text(r *textRule, text string) bool {
	ok := true
	if r.min != nil || r.max != nil {
		length := utf8.RuneCountInString(text)
		if r.min != nil && length < *r.min {
			ok = c.fault("minLength", "must have at least "+counted(*r.min, "character", "characters")+", not "+strconv.Itoa(length))
		}
		if r.max != nil && length > *r.max {
			ok = c.fault("maxLength", "must have at most "+counted(*r.max, "character", "characters")+", not "+strconv.Itoa(length))
		}
	}
	if r.pattern != nil && !c.matches(r.pattern, text) {
		ok = c.fault("pattern", "must match the pattern "+shortened(r.pattern.String(), 2*maxQuoted))
	}
	return ok
}

func (c *check) number(r *numericRule, literal string) bool {
	ok := c.spend(1 + len(literal)/bytesPerStep)
	if r.min != nil && r.min.compare(literal) < 0 {
		ok = c.fault("minimum", "must be at least "+r.min.text)
	}
	if r.max != nil && r.max.compare(literal) > 0 {
		ok = c.fault("maximum", "must be at most "+r.max.text)
	}
	if r.above != nil && r.above.compare(literal) <= 0 {
		ok = c.fault("exclusiveMinimum", "must be greater than "+r.above.text)
	}
	if r.below != nil && r.below.compare(literal) >= 0 {
		ok = c.fault("exclusiveMaximum", "must be less than "+r.below.text)
	}
	if r.multiple != nil && !r.multiple.divides(literal) {
		ok = c.fault("multipleOf", "must be a multiple of "+r.multiple.text)
	}
	return ok
}
