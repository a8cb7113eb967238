package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"tutti/internal/core"
)

const envPrefix = "TUTTI_"

// isIgnored reports whether a variable starts with the prefix but is not a key: clients and tests read it, or Kubernetes set it for a
// service whose name starts with tutti.
func isIgnored(v variable) bool {
	switch v.name {
	case "TUTTI_CONFIG", "TUTTI_SERVER", "TUTTI_TOKEN", "TUTTI_CA_FILE":
		return true
	}
	for _, prefix := range []string{"TUTTI_TEST_", "TUTTI_SERVICES_", "TUTTI_ES_", "TUTTI_KAFKA_", "TUTTI_POSTGRES_"} {
		if strings.HasPrefix(v.name, prefix) {
			return true
		}
	}
	return serviceLink(v)
}

// serviceLink recognizes NAME_SERVICE_HOST, NAME_SERVICE_PORT[_X] and NAME_PORT[_N_TCP[_X]] (Kubernetes, "Accessing the
// Service", environment variables). NAME_PORT alone is one only when its value is an address.
func serviceLink(v variable) bool {
	words := strings.Split(v.name, "_")
	for i := 1; i < len(words); i++ {
		rest := words[i:]
		switch {
		case rest[0] == "SERVICE" && len(rest) > 1 && (rest[1] == "HOST" || rest[1] == "PORT"):
			return true
		case rest[0] != "PORT":
		case len(rest) > 2 && slices.Contains([]string{"TCP", "UDP", "SCTP"}, rest[2]):
			return true
		case len(rest) == 1 && strings.Contains(v.value, "://"):
			return true
		}
	}
	return false
}

// variable is one variable of the environment that may set a key.
type variable struct{ name, value string }

// overlay sets the keys of environ in root; the environment takes precedence (CONTRACT section 9). keys are those of the whole file, with
// one element for each list of objects.
func overlay(root *node, environ []string, keys []key, f *errorList) {
	var variables []variable
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if v := (variable{name, value}); ok && strings.HasPrefix(name, envPrefix) && !isIgnored(v) {
			variables = append(variables, v)
		}
	}
	// In natural order, so that list elements follow each other and the order of errors is stable.
	slices.SortFunc(variables, func(a, b variable) int { return naturalCompare(a.name, b.name) })
	o := &overlayer{faults: f, setBy: map[string]string{}, names: variableNames(envPrefix, keys)}
	for _, v := range variables {
		if !o.object(root, "", strings.Split(v.name[len(envPrefix):], "_"), v, keys) {
			f.add(v.name, "", "", "unknown variable; the nearest valid one is %s", core.Nearest(v.name, slices.Values(o.names)))
		}
	}
}

type overlayer struct {
	faults *errorList
	// setBy is the variable that set a path.
	setBy map[string]string
	names []string
}

// object finds the key that matches the first tokens, and sets it. It returns false when there is none. The longest match wins, so that
// PASSWORD_FILE is not a member FILE of PASSWORD.
func (o *overlayer) object(n *node, path string, tokens []string, v variable, keys []key) bool {
	for used := len(tokens); used > 0; used-- {
		word := strings.Join(tokens[:used], "")
		rest := tokens[used:]
		for _, k := range keys {
			at := joined(path, k.name)
			switch {
			case k.isSecret() && len(rest) == 0 && strings.EqualFold(word, k.secretFile()):
				o.secret(n, at+"File", k.secretFile(), at, k.name, v)
				return true
			case k.isSecret() && len(rest) == 0 && strings.EqualFold(word, k.name):
				o.secret(n, at, k.name, at+"File", k.secretFile(), v)
				return true
			case !strings.EqualFold(word, k.name):
			case k.members != nil && len(rest) > 0:
				if o.object(o.child(n, k.name, v), at, rest, v, k.members) {
					return true
				}
			case k.elements != nil && len(rest) > 1:
				return o.element(n, at, rest, v, k)
			case k.isList() && len(rest) == 1:
				return o.listItem(n, at, rest[0], v, k)
			case k.target != nil && len(rest) == 0:
				o.set(n, k.name, at, v)
				return true
			}
		}
	}
	return false
}

// secret sets a secret by value or by file. It replaces the other form in the file; two variables are a contradiction..
func (o *overlayer) secret(n *node, path, name, otherPath, other string, v variable) {
	o.set(n, name, path, v)
	if _, set := o.setBy[otherPath]; !set {
		n.remove(other)
	}
}

func (o *overlayer) set(n *node, name, path string, v variable) {
	if !o.claim(path, v) {
		return
	}
	n.set(name, scalarOf(v))
}

// claim records that v sets path, and reports an error when another variable does too.
func (o *overlayer) claim(path string, v variable) bool {
	if other, twice := o.setBy[path]; twice {
		o.faults.add(path, "", "unset one of them", "is set by both %s and %s", other, v.name)
		return false
	}
	o.setBy[path] = v.name
	return true
}

func scalarOf(v variable) *node {
	return &node{kind: kindScalar, text: v.value, source: "variable " + v.name}
}

// child returns the object of a member, created when the file has none. A value of another type is left to the decoder.
func (o *overlayer) child(n *node, name string, v variable) *node {
	if m := n.member(name); m != nil {
		if m.kind != kindObject {
			return newObject(m.source)
		}
		return m
	}
	m := newObject("variable " + v.name)
	n.set(name, m)
	return m
}

func (o *overlayer) element(n *node, path string, tokens []string, v variable, k key) bool {
	i, ok := indexOf(tokens[0])
	if !ok {
		return false
	}
	items, ok := o.items(n, k.name, v)
	if !ok {
		return true // not a list in the file: reported by the decoder
	}
	if i > len(items.items) {
		o.faults.add(indexed(path, i), "variable "+v.name, "count from 0 without gaps", "there is no element %d", len(items.items))
		return true
	}
	at := indexed(path, i)
	element := newObject("variable " + v.name)
	if i < len(items.items) && items.items[i].kind == kindObject {
		element = items.items[i]
	}
	if !o.object(element, at, tokens[1:], v, k.elements(1)[0]) {
		return false
	}
	if i == len(items.items) {
		items.items = append(items.items, element)
	} else if items.items[i].kind == kindNull {
		items.items[i] = element
	}
	return true
}

func (o *overlayer) listItem(n *node, path, token string, v variable, k key) bool {
	i, ok := indexOf(token)
	if !ok {
		return false
	}
	items, ok := o.items(n, k.name, v)
	if !ok {
		o.faults.add(indexed(path, i), "variable "+v.name, "", "the list is also set as a whole")
		return true
	}
	at := indexed(path, i)
	switch {
	case !o.claim(at, v):
	case i < len(items.items):
		items.items[i] = scalarOf(v)
	case i == len(items.items):
		items.items = append(items.items, scalarOf(v))
	default:
		o.faults.add(at, "variable "+v.name, "count from 0 without gaps", "there is no element %d", len(items.items))
	}
	return true
}

// items returns the list of a member, created when missing; false when it is not a list.
func (o *overlayer) items(n *node, name string, v variable) (*node, bool) {
	m := n.member(name)
	if m == nil {
		m = &node{kind: kindList, source: "variable " + v.name}
		n.set(name, m)
	}
	return m, m.kind == kindList
}

func indexOf(token string) (int, bool) {
	i, err := strconv.Atoi(token)
	return i, err == nil && i >= 0 && strconv.Itoa(i) == token
}

// variableNames returns all variables, with 0 for list indexes.
func variableNames(prefix string, keys []key) []string {
	var names []string
	for _, k := range keys {
		name := prefix + variableWord(k.name)
		switch {
		case k.elements != nil:
			names = append(names, variableNames(name+"_0_", k.elements(1)[0])...)
		case k.members != nil:
			names = append(names, variableNames(name+"_", k.members)...)
		default:
			names = append(names, name)
			if k.isSecret() {
				names = append(names, prefix+variableWord(k.secretFile()))
			}
		}
	}
	return names
}

// variableWord returns a key in a variable's format: maxBodyBytes is MAX_BODY_BYTES. MAXBODYBYTES is accepted as well.
func variableWord(name string) string {
	var b strings.Builder
	// A name with inner capitals is one word.
	for i, r := range strings.ReplaceAll(name, "GraphQL", "Graphql") {
		if i > 0 && unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToUpper(r))
	}
	return b.String()
}

// naturalCompare orders names by their words, numbers by value.
func naturalCompare(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "_"), strings.Split(b, "_"), func(x, y string) int {
		i, errX := strconv.Atoi(x)
		j, errY := strconv.Atoi(y)
		if errX == nil && errY == nil {
			return i - j
		}
		return strings.Compare(x, y)
	})
}

// Variable returns the canonical environment variable of a key's path, such as TUTTI_REPOSITORIES_0_CODE for
// repositories[0].code.
func Variable(path string) string {
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	for i, p := range parts {
		parts[i] = variableWord(p)
	}
	return fmt.Sprint(envPrefix, strings.Join(parts, "_"))
}
