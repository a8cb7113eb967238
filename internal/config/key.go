package config

import (
	"math"
	"regexp"
	"time"
)

// key is one key of the file: where its value goes, what it is without one, and what it may be. The tables of keys are
// the one description from which the file is read, the environment is matched, the schema is made and the effective
// configuration is printed.
type key struct {
	name string
	doc  string
	// target is *string, *Secret, *int, *int64, *bool, **bool, *time.Duration or *[]string; nil for an object or objects.
	// That of a **bool is nil without input.
	target any
	// fallback is the value without input, of the target's type.
	fallback any
	// members are the keys of an object.
	members []key
	// elements makes room for n objects of a list and returns the keys of each.
	elements func(n int) [][]key
	// present returns the keys of each object that is there.
	present func() [][]key

	required bool
	// waived, when not nil, reports whether the key may be left out after all, by what was read before it: the sibling
	// waiverKey is waiverValue.
	waived                 func() bool
	waiverKey, waiverValue string
	// choices are the only values; fold takes them in any case.
	choices []string
	fold    bool
	// least and most bound a number or, in nanoseconds, a duration.
	least, most int64
	// pattern is what a text, or each text of a list, must match unless it is empty; says puts it in words.
	pattern *regexp.Regexp
	says    string
	// number lets a text be written as a whole number, without quotes.
	number bool
	// off lets a duration be zero, below least, which turns something off.
	off bool
	// hidden keeps the value out of messages.
	hidden bool
	// credentials tells that the value is shown without those that it may hold.
	credentials bool
}

// secretFile is what a secret's key is called when a file holds the secret.
func (k key) secretFile() string { return k.name + "File" }

// mustBe reports whether the key needs a value, by what was read before it.
func (k key) mustBe() bool { return k.required && (k.waived == nil || !k.waived()) }

func (k key) isSecret() bool { _, ok := k.target.(*Secret); return ok }

func (k key) isList() bool { _, ok := k.target.(*[]string); return ok }

func text(name string, target *string, fallback, doc string) key {
	return key{name: name, target: target, fallback: fallback, doc: doc}
}

func secret(name string, target *Secret, doc string) key {
	return key{name: name, target: target, fallback: Secret(""), doc: doc}
}

func number(name string, target *int, fallback, least, most int, doc string) key {
	return key{name: name, target: target, fallback: fallback, least: int64(least), most: int64(most), doc: doc}
}

func size(name string, target *int64, fallback, least int64, doc string) key {
	return key{name: name, target: target, fallback: fallback, least: least, most: math.MaxInt64, doc: doc}
}

func flag(name string, target *bool, fallback bool, doc string) key {
	return key{name: name, target: target, fallback: fallback, doc: doc}
}

// choice is a flag without a default: its target is nil when nobody says anything.
func choice(name string, target **bool, doc string) key {
	return key{name: name, target: target, doc: doc}
}

func duration(name string, target *time.Duration, fallback time.Duration, doc string) key {
	return key{name: name, target: target, fallback: fallback, least: 1, most: math.MaxInt64, doc: doc}
}

func list(name string, target *[]string, fallback []string, doc string) key {
	return key{name: name, target: target, fallback: fallback, doc: doc}
}

func object(name, doc string, members ...key) key {
	return key{name: name, doc: doc, members: members}
}

func (k key) oneOf(choices ...string) key { k.choices = choices; return k }

func (k key) anyCase() key { k.fold = true; return k }

func (k key) orNumber() key { k.number = true; return k }

func (k key) offOr(least time.Duration) key { k.off, k.least = true, int64(least); return k }

func (k key) needed() key { k.required = true; return k }

func (k key) neededUnless(sibling, value string, waived func() bool) key {
	k.required, k.waiverKey, k.waiverValue, k.waived = true, sibling, value, waived
	return k
}

func (k key) matching(pattern, says string) key {
	k.pattern, k.says = regexp.MustCompile(pattern), says
	return k
}
