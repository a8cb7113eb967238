package schemas

import (
	"strconv"

	"tutti/internal/core"
)

func (c *check) object(r *objectRule, v *value, ev *evaluated) bool {
	members := v.members()
	ok := true
	if r.min != nil && len(members) < *r.min {
		ok = c.fault("minProperties", "must have at least "+counted(*r.min, "property", "properties")+", not "+strconv.Itoa(len(members)))
	}
	if r.max != nil && len(members) > *r.max {
		ok = c.fault("maxProperties", "must have at most "+counted(*r.max, "property", "properties")+", not "+strconv.Itoa(len(members)))
	}
	ok = c.required(r, v) && ok
	for i := range members {
		if c.enough(ok) {
			return false
		}
		ok = c.memberOf(r, &members[i], ev) && ok
	}
	for _, d := range r.dependents {
		if c.enough(ok) {
			return false
		}
		if v.member(d.name) != nil {
			ok = c.ask(d.rule, v, ev) && ok
		}
	}
	return ok
}

func (c *check) required(r *objectRule, v *value) bool {
	ok := c.spend(len(r.required))
	for _, name := range r.required {
		if v.member(name) == nil {
			ok = c.fault("required", "the property "+quoted(name)+" is missing")
		}
	}
	for _, q := range r.requirements {
		if v.member(q.name) == nil {
			continue
		}
		for _, name := range q.required {
			if v.member(name) == nil {
				ok = c.fault(r.requirementKeyword, "the property "+quoted(name)+" is missing beside "+quoted(q.name))
			}
		}
	}
	return ok
}

// memberOf asks every rule that an object has for one of its members.
func (c *check) memberOf(r *objectRule, m *member, ev *evaluated) bool {
	at := token{name: m.name}
	ok, seen := true, false
	if own, has := r.properties[m.name]; has {
		seen = true
		ok = c.below(at, own, &m.value)
	}
	for _, p := range r.patterns {
		if c.matches(p.regex, m.name) {
			seen = true
			ok = c.below(at, p.rule, &m.value) && ok
		}
	}
	if !seen && r.additional != nil {
		seen = true
		if r.additional.always != nil {
			ok = *r.additional.always || c.faultAt(at, "additionalProperties", "is not a property that the schema allows")
		} else {
			ok = c.below(at, r.additional, &m.value)
		}
	}
	if seen {
		ev.property(m.name)
	}
	if r.names != nil {
		ok = c.name(r.names, m.name) && ok
	}
	return ok
}

// name asks a rule about the name of a member. What is wrong is told at the member.
func (c *check) name(r *rule, name string) bool {
	text := value{kind: kindString, text: name}
	if c.silently(r, &text, nil) {
		return true
	}
	if c.quiet > 0 || c.err != nil {
		return false
	}
	outer := c.found
	c.found = &faults{}
	c.below(token{name: name}, r, &text)
	inner := c.found
	c.found = outer
	for _, f := range inner.list {
		c.found.add(core.Violation{Pointer: f.Pointer, Message: "its name " + f.Message, Keyword: "propertyNames"})
	}
	return false
}

func (c *check) faultAt(t token, keyword, message string) bool {
	c.path = append(c.path, t)
	c.fault(keyword, message)
	c.path = c.path[:len(c.path)-1]
	return false
}
