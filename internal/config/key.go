package config

import (
	"math"
	"regexp"
	"time"
)

// key describes one key of the file: the target of its value, its default and its valid values. The key tables are the only description:
// the file is decoded, the environment is matched, the schema is generated and the effective configuration is printed from them.
type key struct {
	name string
	doc  string
	// target is *string, *Secret, *int, *int64, *bool, **bool, *time.Duration or *[]string; nil for an object or objects.
	// A **bool is nil when not set.
	target any
	// fallback is the default value, of the target's type.
	fallback any
	// members are the keys of an object.
	members []key
	// elements allocates n objects of a list and returns the keys of each.
	elements func(n int) [][]key
	// present returns the keys of each existing object.
	present func() [][]key

	required bool
	// optional, when not nil, reports whether the key may be missing, depending on keys read before: the sibling waiverKey has
	// waiverValue.
	optional               func() bool
	waiverKey, waiverValue string
	// choices are the only values; with ignoreCase case is ignored.
	choices    []string
	ignoreCase bool
	// minimum and maximum are the limits of a number or, in nanoseconds, a duration.
	minimum, maximum int64
	// pattern must match a text, or each text of a list, unless empty; description describes it.
	pattern     *regexp.Regexp
	description string
	// number permits writing a text as a whole number without quotes.
	number bool
	// zeroDisables permits a duration of zero, which turns a function off.
	zeroDisables bool
	// hidden hides the value in messages.
	hidden bool
	// credentials masks credentials within the value.
	credentials bool
}

// secretFile returns the name of the key for a file with the secret.
func (k key) secretFile() string { return k.name + "File" }

// isRequired reports whether the key needs a value, depending on keys read before.
func (k key) isRequired() bool { return k.required && (k.optional == nil || !k.optional()) }

func (k key) isSecret() bool { _, ok := k.target.(*Secret); return ok }

func (k key) isList() bool { _, ok := k.target.(*[]string); return ok }

func text(name string, target *string, fallback, doc string) key {
	return key{name: name, target: target, fallback: fallback, doc: doc}
}

func secret(name string, target *Secret, doc string) key {
	return key{name: name, target: target, fallback: Secret(""), doc: doc}
}

func number(name string, target *int, fallback, least, most int, doc string) key {
	return key{name: name, target: target, fallback: fallback, minimum: int64(least), maximum: int64(most), doc: doc}
}

func size(name string, target *int64, fallback, least int64, doc string) key {
	return key{name: name, target: target, fallback: fallback, minimum: least, maximum: math.MaxInt64, doc: doc}
}

func flag(name string, target *bool, fallback bool, doc string) key {
	return key{name: name, target: target, fallback: fallback, doc: doc}
}

// choice is a flag without a default: its target is nil when not set.
func choice(name string, target **bool, doc string) key {
	return key{name: name, target: target, doc: doc}
}

func duration(name string, target *time.Duration, fallback time.Duration, doc string) key {
	return key{name: name, target: target, fallback: fallback, minimum: 1, maximum: math.MaxInt64, doc: doc}
}

func list(name string, target *[]string, fallback []string, doc string) key {
	return key{name: name, target: target, fallback: fallback, doc: doc}
}

func object(name, doc string, members ...key) key {
	return key{name: name, doc: doc, members: members}
}

func (k key) oneOf(choices ...string) key { k.choices = choices; return k }

func (k key) anyCase() key { k.ignoreCase = true; return k }

func (k key) orNumber() key { k.number = true; return k }

func (k key) orZero(least time.Duration) key {
	k.zeroDisables, k.minimum = true, int64(least)
	return k
}

func (k key) require() key { k.required = true; return k }

func (k key) requireUnless(sibling, value string, waived func() bool) key {
	k.required, k.waiverKey, k.waiverValue, k.optional = true, sibling, value, waived
	return k
}

func (k key) matching(pattern, says string) key {
	k.pattern, k.description = regexp.MustCompile(pattern), says
	return k
}
