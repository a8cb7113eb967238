package migrate

import (
	"regexp"
	"strings"
	"unicode"

	"tutti/internal/base/setting"
	"tutti/internal/config"
)

// key is a key of a product and its counterpart in tutti.
type key struct {
	// name is in the form of an environment variable: # is an index, a final * any rest. Underscores are not compared.
	name string
	// to is tutti's key, with # for an index; "" when there is none.
	to string
	// by sets the key; nil when internal/config reads it from the environment.
	by conversion
	// note is written beside the key when it is not the source of a value.
	note string
	// ask is the decision that the user is told to make if the value is not standard.
	ask, standard string
	// member is the key's path in the JSON files of an Arranger's catalogue, which replaces the variable.
	member string
	// secret hides the value.
	secret bool
}

// conversion sets the key to from a variable, and reports whether it did.
type conversion func(m *migration, v variable, to string) bool

// variable is one key of a product's configuration with its value.
type variable struct {
	// name is as the product's environment has it, or dotted as in a file of Spring.
	name, value string
	// shown names the key in comments; "" for name.
	shown string
}

func (v variable) String() string {
	if v.shown != "" {
		return v.shown
	}
	return v.name
}

// product is one of the products that tutti replaces.
type product struct {
	name string
	keys []key
	// marks are prefixes of variables that only the product has.
	marks []string
	// files names what its folder may hold, for messages.
	files string
	// read reads the keys that the table has without a conversion from an environment.
	read func(f *config.Foreign, environ []string) []string
}

// plain returns a name as the tables compare it: an index is #, dots are underscores, which are left out.
func plain(name string) string {
	name = strings.ToUpper(strings.NewReplacer(".", "_", "[", "_", "]", "", "-", "").Replace(name))
	words := strings.Split(name, "_")
	for i, word := range words {
		if _, ok := setting.IndexOf(word); ok {
			words[i] = "#"
		}
	}
	return strings.Join(words, "")
}

// row returns the row of the table for a name, the one without a * first; nil when there is none.
func (p product) row(name string) *key {
	name = plain(name)
	var found *key
	for i := range p.keys {
		k := &p.keys[i]
		prefix, open := strings.CutSuffix(plain(k.name), "*")
		switch {
		case prefix == name:
			return k
		case open && found == nil && strings.HasPrefix(name, prefix):
			found = k
		}
	}
	return found
}

// indexed returns to with the first index of name, 0 when it has none.
func indexed(to, name string) string {
	index := "0"
	if found := regexp.MustCompile(`[_\[](\d+)([_\]]|$)`).FindStringSubmatch(name); found != nil {
		index = found[1]
	}
	return strings.ReplaceAll(to, "#", index)
}

// secretName matches the names of unknown keys whose values are not shown.
var secretName = regexp.MustCompile(`(?i)pass|secret|token|credential|api_?key|access_?key|private`)

// value returns the value for a comment, without secrets and line breaks.
func (k *key) value(v variable) string {
	unknown := k == nil || strings.HasSuffix(k.name, "*")
	if k != nil && k.secret || unknown && secretName.MatchString(v.name) {
		return "(not shown)"
	}
	return masked(v.value)
}

// credentials match a user with a password before a host, and a password among a URL's parameters.
var (
	userCredentials = regexp.MustCompile(`(^|[\s,/])[^\s,/@:]+:[^\s,/@]+@`)
	parameter       = regexp.MustCompile(`(?i)([a-z]*pass[a-z]*)=[^&;\s]+`)
)

// masked returns a value, which may be a list of URLs or hosts, without passwords.
func masked(value string) string { return sentence(setting.MaskUser(value)) }

// sentence returns a text in one line and without passwords within URLs and hosts.
func sentence(s string) string {
	return printable(parameter.ReplaceAllString(userCredentials.ReplaceAllString(s, "$1********@"), "$1=********"))
}

// printable replaces characters that would end a comment or a line of a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
}
