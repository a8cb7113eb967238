package setting

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"tutti/internal/base/order"
	"tutti/internal/base/spelling"
)

// EnvPrefix is the prefix of the variables of keys.
const EnvPrefix = "TUTTI_"

// isIgnored reports whether a variable starts with the prefix but is not a key: clients and tests read it, or Kubernetes set it for a
// service whose name starts with tutti.
func isIgnored(v EnvVariable) bool {
	switch v.Name {
	case "TUTTI_CONFIG", "TUTTI_SERVER", "TUTTI_TOKEN", "TUTTI_CA_FILE":
		return true
	}
	for _, prefix := range []string{"TUTTI_TEST_", "TUTTI_SERVICES_", "TUTTI_ES_", "TUTTI_KAFKA_", "TUTTI_POSTGRES_"} {
		if strings.HasPrefix(v.Name, prefix) {
			return true
		}
	}
	return serviceLink(v)
}

// serviceLink recognizes NAME_SERVICE_HOST, NAME_SERVICE_PORT[_X] and NAME_PORT[_N_TCP[_X]] (Kubernetes, "Accessing the
// Service", environment variables). NAME_PORT alone is one only when its value is an address.
func serviceLink(v EnvVariable) bool {
	words := strings.Split(v.Name, "_")
	for i := 1; i < len(words); i++ {
		rest := words[i:]
		switch {
		case rest[0] == "SERVICE" && len(rest) > 1 && (rest[1] == "HOST" || rest[1] == "PORT"):
			return true
		case rest[0] != "PORT":
		case len(rest) > 2 && slices.Contains([]string{"TCP", "UDP", "SCTP"}, rest[2]):
			return true
		case len(rest) == 1 && strings.Contains(v.Value, "://"):
			return true
		}
	}
	return false
}

// EnvVariable is one variable of the environment that may set a key.
type EnvVariable struct{ Name, Value string }

// Overlay sets the keys of environ in root; the environment takes precedence (CONTRACT section 9). keys are those of the whole file, with
// one element for each list of objects.
func Overlay(root *Node, environ []string, keys []Key, f *ErrorList) {
	var variables []EnvVariable
	for _, entry := range environ {
		name, value, ok := strings.Cut(entry, "=")
		if v := (EnvVariable{name, value}); ok && strings.HasPrefix(name, EnvPrefix) && !isIgnored(v) {
			variables = append(variables, v)
		}
	}
	// In natural order, so that list elements follow each other and the order of errors is stable.
	order.Sort(variables, func(a, b EnvVariable) int { return NaturalCompare(a.Name, b.Name) })
	o := &overlayer{faults: f, setBy: map[string]string{}, names: variableNames(EnvPrefix, keys)}
	for _, v := range variables {
		if !o.object(root, "", strings.Split(v.Name[len(EnvPrefix):], "_"), v, keys) {
			f.Add(v.Name, "", "", "unknown variable; the nearest valid one is %s", spelling.Nearest(v.Name, slices.Values(o.names)))
		}
	}
}

type overlayer struct {
	faults *ErrorList
	// setBy is the variable that set a path.
	setBy map[string]string
	names []string
}

// object finds the key that matches the first tokens, and sets it. It returns false when there is none. The longest match wins, so that
// PASSWORD_FILE is not a member FILE of PASSWORD.
func (o *overlayer) object(n *Node, path string, tokens []string, v EnvVariable, keys []Key) bool {
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
			case k.each != nil && len(rest) > 1:
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

// secret sets a secret by value or by file. It replaces the other form in the file; setting both by variables is an error.
func (o *overlayer) secret(n *Node, path, name, otherPath, other string, v EnvVariable) {
	o.set(n, name, path, v)
	if _, set := o.setBy[otherPath]; !set {
		n.remove(other)
	}
}

func (o *overlayer) set(n *Node, name, path string, v EnvVariable) {
	if !o.claim(path, v) {
		return
	}
	n.Set(name, scalarOf(v))
}

// claim records that v sets path, and reports an error when another variable does too.
func (o *overlayer) claim(path string, v EnvVariable) bool {
	if other, twice := o.setBy[path]; twice {
		o.faults.Add(path, "", "unset one of them", "is set by both %s and %s", other, v.Name)
		return false
	}
	o.setBy[path] = v.Name
	return true
}

func scalarOf(v EnvVariable) *Node {
	return &Node{Kind: KindScalar, Text: v.Value, Source: "variable " + v.Name}
}

// child returns the object of a member, created when the file has none. A value of another type is left to the decoder.
func (o *overlayer) child(n *Node, name string, v EnvVariable) *Node {
	if m := n.Member(name); m != nil {
		if m.Kind != KindObject {
			return NewObject(m.Source)
		}
		return m
	}
	m := NewObject("variable " + v.Name)
	n.Set(name, m)
	return m
}

func (o *overlayer) element(n *Node, path string, tokens []string, v EnvVariable, k Key) bool {
	i, ok := IndexOf(tokens[0])
	if !ok {
		return false
	}
	items, ok := o.items(n, k.name, v)
	if !ok {
		return true // not a list in the file: reported by the decoder
	}
	if i > len(items.Items) {
		o.faults.Add(Indexed(path, i), "variable "+v.Name, "count from 0 without gaps", "there is no element %d", len(items.Items))
		return true
	}
	at := Indexed(path, i)
	element := NewObject("variable " + v.Name)
	if i < len(items.Items) && items.Items[i].Kind == KindObject {
		element = items.Items[i]
	}
	if !o.object(element, at, tokens[1:], v, k.elements(1)[0]) {
		return false
	}
	if i == len(items.Items) {
		items.Items = append(items.Items, element)
	} else if items.Items[i].Kind == kindNull {
		items.Items[i] = element
	}
	return true
}

func (o *overlayer) listItem(n *Node, path, token string, v EnvVariable, k Key) bool {
	i, ok := IndexOf(token)
	if !ok {
		return false
	}
	items, ok := o.items(n, k.name, v)
	if !ok {
		o.faults.Add(Indexed(path, i), "variable "+v.Name, "", "the list is also set as a whole")
		return true
	}
	at := Indexed(path, i)
	switch {
	case !o.claim(at, v):
	case i < len(items.Items):
		items.Items[i] = scalarOf(v)
	case i == len(items.Items):
		items.Items = append(items.Items, scalarOf(v))
	default:
		o.faults.Add(at, "variable "+v.Name, "count from 0 without gaps", "there is no element %d", len(items.Items))
	}
	return true
}

// items returns the list of a member, created when missing; false when it is not a list.
func (o *overlayer) items(n *Node, name string, v EnvVariable) (*Node, bool) {
	m := n.Member(name)
	if m == nil {
		m = &Node{Kind: KindList, Source: "variable " + v.Name}
		n.Set(name, m)
	}
	return m, m.Kind == KindList
}

// IndexOf parses the index of a list in a variable's name.
func IndexOf(token string) (int, bool) {
	i, err := strconv.Atoi(token)
	return i, err == nil && i >= 0 && strconv.Itoa(i) == token
}

// variableNames returns all variables, with 0 for list indexes.
func variableNames(prefix string, keys []Key) []string {
	var names []string
	for _, k := range keys {
		name := prefix + variableWord(k.name)
		switch {
		case k.each != nil:
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

// NaturalCompare orders names by their words, numbers by value.
func NaturalCompare(a, b string) int {
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
	return fmt.Sprint(EnvPrefix, strings.Join(parts, "_"))
}
