package setting

import (
	"math"
	"regexp"
	"time"
)

// Key describes one key of the file: the target of its value, its default and its valid values. The key tables are the only description:
// the file is decoded, the environment is matched, the schema is generated and the effective configuration is printed from them.
type Key struct {
	name, doc string
	// target is *string, *Secret, *int, *int64, *float64, *bool, **bool, *time.Duration or *[]string; nil for an object or objects.
	// A **bool is nil when not set.
	target any
	// fallback is the default value, of the target's type.
	fallback any
	// members are the keys of an object.
	members []Key
	// allocate makes a list of n objects, and each returns the keys of each object; both are nil for other keys.
	allocate func(n int)
	each     func() [][]Key

	required bool
	// optional, when not nil, reports whether the key may be missing, depending on keys read before: the sibling unlessKey has
	// unlessValue.
	optional               func() bool
	unlessKey, unlessValue string
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
	// file receives the name of a secret's file; nil if it is not needed after reading the secret.
	file *string
	// hidden hides the value in messages.
	hidden bool
	// credentials masks credentials within the value.
	credentials bool
}

// secretFile returns the name of the key for a file with the secret.
func (k Key) secretFile() string { return k.name + "File" }

// isRequired reports whether the key needs a value, depending on keys read before.
func (k Key) isRequired() bool { return k.required && (k.optional == nil || !k.optional()) }

func (k Key) isSecret() bool { _, ok := k.target.(*Secret); return ok }

func (k Key) isList() bool { _, ok := k.target.(*[]string); return ok }

// Text returns the key of a text.
func Text(name string, target *string, fallback, doc string) Key {
	return Key{name: name, target: target, fallback: fallback, doc: doc}
}

// Address returns the key of a URL, or of several.
func Address(name string, target *URL, doc string) Key {
	return Text(name, (*string)(target), "", doc).MaskCredentials()
}

// SecretText returns the key of a secret, which may be in a file that the key with the suffix File names.
func SecretText(name string, target *Secret, doc string) Key {
	return Key{name: name, target: target, fallback: Secret(""), doc: doc}
}

// Number returns the key of a whole number from least to most.
func Number(name string, target *int, fallback, least, most int, doc string) Key {
	return Key{name: name, target: target, fallback: fallback, minimum: int64(least), maximum: int64(most), doc: doc}
}

// Size returns the key of a whole number of at least least.
func Size(name string, target *int64, fallback, least int64, doc string) Key {
	return Key{name: name, target: target, fallback: fallback, minimum: least, maximum: math.MaxInt64, doc: doc}
}

// Ratio returns the key of a number from 0 to 1.
func Ratio(name string, target *float64, fallback float64, doc string) Key {
	return Key{name: name, target: target, fallback: fallback, doc: doc}
}

// Flag returns the key of a boolean.
func Flag(name string, target *bool, fallback bool, doc string) Key {
	return Key{name: name, target: target, fallback: fallback, doc: doc}
}

// Choice is a flag without a default: its target is nil when not set.
func Choice(name string, target **bool, doc string) Key {
	return Key{name: name, target: target, doc: doc}
}

// Duration returns the key of a positive duration.
func Duration(name string, target *time.Duration, fallback time.Duration, doc string) Key {
	return Key{name: name, target: target, fallback: fallback, minimum: 1, maximum: math.MaxInt64, doc: doc}
}

// List returns the key of a list of texts.
func List(name string, target *[]string, fallback []string, doc string) Key {
	return Key{name: name, target: target, fallback: fallback, doc: doc}
}

// Object returns the key of an object with members.
func Object(name, doc string, members ...Key) Key {
	return Key{name: name, doc: doc, members: members}
}

// Objects returns the key of a list of objects: allocate makes n of them, keys returns the keys of each.
func Objects(name, doc string, allocate func(n int), keys func() [][]Key) Key {
	return Key{name: name, doc: doc, allocate: allocate, each: keys}
}

// elements allocates n objects and returns the keys of each.
func (k Key) elements(n int) [][]Key {
	k.allocate(n)
	return k.each()
}

// OneOf limits a text to choices.
func (k Key) OneOf(choices ...string) Key { k.choices = choices; return k }

// AnyCase ignores the case of choices.
func (k Key) AnyCase() Key { k.ignoreCase = true; return k }

// OrNumber permits writing a text as a whole number without quotes.
func (k Key) OrNumber() Key { k.number = true; return k }

// OrZero permits a duration of zero, which turns a function off, or of at least least.
func (k Key) OrZero(least time.Duration) Key {
	k.zeroDisables, k.minimum = true, int64(least)
	return k
}

// Require makes a value required.
func (k Key) Require() Key { k.required = true; return k }

// RequireUnless makes a value required unless waived, which is when sibling has value.
func (k Key) RequireUnless(sibling, value string, waived func() bool) Key {
	k.required, k.unlessKey, k.unlessValue, k.optional = true, sibling, value, waived
	return k
}

// Matching requires a text, or each text of a list, to match pattern unless empty; says describes it.
func (k Key) Matching(pattern, says string) Key {
	k.pattern, k.description = regexp.MustCompile(pattern), says
	return k
}

// KeepFile sets target to the name of the file that a secret was read from, "" for none.
func (k Key) KeepFile(target *string) Key { k.file = target; return k }

// MaskCredentials hides credentials within the value when it is printed.
func (k Key) MaskCredentials() Key { k.credentials = true; return k }
