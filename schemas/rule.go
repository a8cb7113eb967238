package schemas

import (
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// rule is a compiled schema in the form that checking walks. The library compiles; checking is done here, because its
// own validator can neither be bounded nor stopped: a schema of a few lines makes it run for hours.
type rule struct {
	// location is a URL whose fragment is the rule's JSON pointer.
	location string
	// always is a boolean schema's value.
	always *bool
	types  typeSet
	// constant and enum are const and enum.
	constant *choice
	enum     *choice
	format   *jsonschema.Format

	// refs are $ref and its relatives.
	refs                []*rule
	allOf, anyOf, oneOf []*rule
	not                 *rule
	condition           *rule
	then, otherwise     *rule

	object  *objectRule
	array   *arrayRule
	text    *textRule
	numeric *numericRule

	unevaluatedProperties, unevaluatedItems *rule

	// instructions is, on the rule of a whole schema, the size of its regular expressions.
	instructions int
}

type objectRule struct {
	min, max           *int
	required           []string
	properties         map[string]*rule
	patterns           []patternRule
	additional         *rule
	names              *rule
	requirements       []requirement
	dependents         []dependent
	requirementKeyword string
}

type patternRule struct {
	regex jsonschema.Regexp
	rule  *rule
}

// requirement is the names that an object must have beside one that it has.
type requirement struct {
	name     string
	required []string
}

// dependent is a rule of an object that has a member of a name.
type dependent struct {
	name string
	rule *rule
}

type arrayRule struct {
	min, max *int
	unique   bool
	// prefix are the rules of the first items, rest that of the others.
	prefix      []*rule
	rest        *rule
	restKeyword string
	contains    *rule
	minContains int
	maxContains *int
	// containsEvaluates is true where what contains matched counts as evaluated (from 2020-12).
	containsEvaluates bool
}

type textRule struct {
	min, max *int
	pattern  jsonschema.Regexp
}

type numericRule struct {
	min, max, above, below, multiple *bound
}

// choice is a set of values.
type choice struct {
	texts map[string]struct{}
	// others holds the canonical form of values that are no strings.
	others map[string]struct{}
	shown  []string
}

func newChoice(values []any) *choice {
	c := &choice{texts: map[string]struct{}{}, others: map[string]struct{}{}}
	for _, decoded := range values {
		v := valueOf(decoded)
		if v.kind == kindString {
			c.texts[v.text] = struct{}{}
		} else {
			c.others[string(canonical(nil, &v))] = struct{}{}
		}
		if len(c.shown) <= maxListed {
			c.shown = append(c.shown, shown(&v))
		}
	}
	return c
}

func (c *choice) has(v *value) bool {
	if v.kind == kindString {
		_, ok := c.texts[v.text]
		return ok
	}
	if len(c.others) == 0 {
		return false
	}
	_, ok := c.others[string(canonical(nil, v))]
	return ok
}

func (c *choice) size() int { return len(c.texts) + len(c.others) }

// typeSet is the types that a value may have; none means any.
type typeSet uint8

const typeInteger typeSet = 1 << 7

func typeSetOf(names []string) typeSet {
	var set typeSet
	for _, name := range names {
		switch name {
		case "null":
			set |= 1 << kindNull
		case "boolean":
			set |= 1 << kindBool
		case "number":
			set |= 1 << kindNumber
		case "string":
			set |= 1 << kindString
		case "array":
			set |= 1 << kindArray
		case "object":
			set |= 1 << kindObject
		case "integer":
			set |= typeInteger
		}
	}
	return set
}

func (s typeSet) allows(v *value) bool {
	return s == 0 || s&(1<<v.kind) != 0 || s&typeInteger != 0 && v.kind == kindNumber && integral(v.text)
}

// names says the types as a message does: "a string or null".
func (s typeSet) names() string {
	var words []string
	for _, k := range []kind{kindObject, kindArray, kindString, kindNumber, kindBool, kindNull} {
		if s&(1<<k) != 0 {
			words = append(words, k.typeName())
		}
		if k == kindNumber && s&typeInteger != 0 && s&(1<<kindNumber) == 0 {
			words = append(words, "an integer")
		}
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// inPlace gives the rules that are asked about the same value as r.
func (r *rule) inPlace() []*rule {
	var all []*rule
	for _, some := range [][]*rule{r.refs, r.allOf, r.anyOf, r.oneOf} {
		all = append(all, some...)
	}
	for _, one := range []*rule{r.not, r.condition, r.then, r.otherwise} {
		if one != nil {
			all = append(all, one)
		}
	}
	if r.object != nil {
		for _, d := range r.object.dependents {
			all = append(all, d.rule)
		}
	}
	return all
}
