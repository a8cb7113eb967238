package schemas

import (
	"maps"
	"slices"
	"strconv"
)

// combined asks the rules that r is made of about the same value.
func (c *check) combined(r *rule, v *value, ev *evaluated) bool {
	ok := true
	for _, all := range [][]*rule{r.refs, r.allOf} {
		for _, part := range all {
			if c.enough(ok) {
				return false
			}
			ok = c.ask(part, v, ev) && ok
		}
	}
	if r.anyOf != nil && !c.enough(ok) {
		ok = c.anyOf(r.anyOf, v, ev) && ok
	}
	if r.oneOf != nil && !c.enough(ok) {
		ok = c.oneOf(r.oneOf, v, ev) && ok
	}
	if r.not != nil && !c.enough(ok) && c.silently(r.not, v, nil) {
		ok = c.fault("not", excluded(r.not))
	}
	if r.condition != nil && !c.enough(ok) {
		ok = c.conditional(r, v, ev) && ok
	}
	return ok
}

func (c *check) anyOf(rules []*rule, v *value, ev *evaluated) bool {
	matched := false
	for _, r := range rules {
		branch := ev.branch()
		if c.silently(r, v, branch) {
			matched = true
			ev.merge(branch)
			if ev == nil {
				return true
			}
		}
		if c.err != nil {
			return false
		}
	}
	return matched || c.noneOf("anyOf", rules, v)
}

func (c *check) oneOf(rules []*rule, v *value, ev *evaluated) bool {
	first := -1
	var kept *evaluated
	for i, r := range rules {
		branch := ev.branch()
		if c.silently(r, v, branch) {
			if first >= 0 {
				return c.fault("oneOf", "matches the alternatives "+strconv.Itoa(first+1)+" and "+strconv.Itoa(i+1)+
					" of "+strconv.Itoa(len(rules))+", but must match only one")
			}
			first, kept = i, branch
		}
		if c.err != nil {
			return false
		}
	}
	if first < 0 {
		return c.noneOf("oneOf", rules, v)
	}
	ev.merge(kept)
	return true
}

// noneOf tells what is wrong where no alternative matches: the faults of the one that was clearly meant, if there is
// one.
func (c *check) noneOf(keyword string, rules []*rule, v *value) bool {
	if c.quiet > 0 {
		return false
	}
	for _, strict := range []bool{true, false} {
		var meant []*rule
		for _, r := range rules {
			if plausible(r, v, strict) {
				meant = append(meant, r)
			}
		}
		if len(meant) == 1 {
			c.ask(meant[0], v, nil)
			return false
		}
		if len(meant) > 1 {
			break
		}
	}
	return c.fault(keyword, "matches none of the "+strconv.Itoa(len(rules))+" alternatives")
}

// plausible tells whether nothing at first sight speaks against a rule: its type and, when strict, a constant of the
// value or of one of its properties.
func plausible(r *rule, v *value, strict bool) bool {
	for range maxInPlace {
		if len(r.refs) != 1 || r.types != 0 {
			break
		}
		r = r.refs[0]
	}
	switch {
	case r.always != nil:
		return *r.always
	case !r.types.allows(v), !possible(r, v, strict):
		return false
	case r.object == nil || !strict:
		return true
	}
	members := v.members()
	for i := range members[:min(len(members), maxListed)] {
		own := r.object.properties[members[i].name]
		if own != nil && !possible(own, &members[i].value, true) {
			return false
		}
	}
	return true
}

// possible tells whether the constants of a rule allow a value or, when not strict, a value of its kind.
func possible(r *rule, v *value, strict bool) bool {
	for _, c := range []*choice{r.constant, r.enum} {
		if c != nil && !c.has(v) && (strict || v.kind == kindString != (len(c.texts) > 0)) {
			return false
		}
	}
	return true
}

func excluded(r *rule) string {
	switch {
	case r.always != nil:
		return "is not allowed"
	case r.enum != nil:
		return "must not be " + listedOf(r.enum)
	case r.constant != nil:
		return "must not be " + listed(r.constant.shown)
	case r.object != nil && len(r.object.required) == 1:
		return "must not have the property " + quoted(r.object.required[0])
	default:
		return "is what the schema rules out"
	}
}

func (c *check) conditional(r *rule, v *value, ev *evaluated) bool {
	branch := ev.branch()
	chosen := r.otherwise
	if c.silently(r.condition, v, branch) {
		chosen = r.then
		ev.merge(branch)
	}
	if chosen == nil || c.err != nil {
		return c.err == nil
	}
	return c.ask(chosen, v, ev)
}

// unevaluated asks about the parts that no other rule looked at.
func (c *check) unevaluated(r *rule, v *value, ev *evaluated) bool {
	ok := true
	if r.unevaluatedProperties != nil && v.kind == kindObject {
		for i := range v.members() {
			m := &v.members()[i]
			if c.enough(ok) {
				return false
			}
			if !ev.hasProperty(m.name) {
				ok = c.left(token{name: m.name}, "unevaluatedProperties", "is not a property that the schema allows",
					r.unevaluatedProperties, &m.value) && ok
				ev.property(m.name)
			}
		}
	}
	if r.unevaluatedItems != nil && v.kind == kindArray {
		for i := range v.items() {
			if c.enough(ok) {
				return false
			}
			if !ev.hasItem(i) {
				ok = c.left(token{index: i, item: true}, "unevaluatedItems", "is an item more than the schema allows",
					r.unevaluatedItems, &v.items()[i]) && ok
			}
		}
		ev.firstItems(len(v.items()))
	}
	return ok
}

func (c *check) left(at token, keyword, message string, r *rule, v *value) bool {
	if r.always != nil {
		return *r.always || c.faultAt(at, keyword, message)
	}
	return c.below(at, r, v)
}

// evaluated remembers which parts of a value some rule looked at, for unevaluatedProperties and unevaluatedItems. A nil
// one remembers nothing.
type evaluated struct {
	properties map[string]struct{}
	first      int
	items      map[int]struct{}
}

func (e *evaluated) property(name string) {
	if e == nil {
		return
	}
	if e.properties == nil {
		e.properties = map[string]struct{}{}
	}
	e.properties[name] = struct{}{}
}

func (e *evaluated) hasProperty(name string) bool {
	if e == nil {
		return false
	}
	_, ok := e.properties[name]
	return ok
}

func (e *evaluated) firstItems(n int) {
	if e != nil {
		e.first = max(e.first, n)
	}
}

func (e *evaluated) item(i int) {
	if e == nil {
		return
	}
	if e.items == nil {
		e.items = map[int]struct{}{}
	}
	e.items[i] = struct{}{}
}

func (e *evaluated) hasItem(i int) bool {
	if e == nil {
		return false
	}
	_, ok := e.items[i]
	return ok || i < e.first
}

// branch gives an empty one for a rule that may fail.
func (e *evaluated) branch() *evaluated {
	if e == nil {
		return nil
	}
	return &evaluated{}
}

func (e *evaluated) merge(other *evaluated) {
	if e == nil || other == nil {
		return
	}
	for name := range maps.Keys(other.properties) {
		e.property(name)
	}
	for _, i := range slices.Collect(maps.Keys(other.items)) {
		e.item(i)
	}
	e.firstItems(other.first)
}
