package setting

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"tutti/internal/base/spelling"
)

// decoder decodes a node into the targets of keys.
type decoder struct{ errs *ErrorList }

// Decode sets the targets of keys from n, which may be nil, or to their defaults, and adds the errors to f.
func Decode(n *Node, keys []Key, f *ErrorList) { (&decoder{f}).object("", n, keys) }

// object sets every key from n, which may be nil, and reports unknown names.
func (d *decoder) object(path string, n *Node, keys []Key) {
	if n != nil && n.Kind != KindObject {
		d.wrongKind(path, n, "an object")
		n = nil
	}
	if n != nil {
		d.unknown(path, n, keys)
	}
	for _, k := range keys {
		at, value := joined(path, k.name), n.Member(k.name)
		switch {
		case k.each != nil:
			d.objects(at, value, k)
		case k.members != nil:
			d.object(at, value, k.members)
		case k.isSecret():
			d.secret(at, value, n.Member(k.secretFile()), k)
		default:
			d.value(at, value, k)
		}
	}
}

func (d *decoder) unknown(path string, n *Node, keys []Key) {
	var valid []string
	for _, k := range keys {
		valid = append(valid, k.name)
		if k.isSecret() {
			valid = append(valid, k.secretFile())
		}
	}
	for _, name := range n.names {
		if !slices.Contains(valid, name) {
			d.errs.Add(joined(path, name), n.members[name].Source, "",
				"unknown key; the nearest valid key is %s", joined(path, spelling.Nearest(name, slices.Values(valid))))
		}
	}
}

func (d *decoder) wrongKind(path string, n *Node, want string) {
	d.errs.Add(path, n.Source, "", "must be %s, not %s", want, n.Kind)
}

func (d *decoder) objects(path string, n *Node, k Key) {
	if n == nil {
		k.elements(0)
		return
	}
	if n.Kind != KindList {
		d.wrongKind(path, n, "a list of objects")
		k.elements(0)
		return
	}
	for i, keys := range k.elements(len(n.Items)) {
		item := n.Items[i]
		if item.Kind != KindObject {
			d.wrongKind(Indexed(path, i), item, "an object")
			continue
		}
		d.object(Indexed(path, i), item, keys)
	}
}

// value sets one key that is neither an object nor a secret.
func (d *decoder) value(path string, n *Node, k Key) {
	if n == nil {
		d.fallback(k)
		if fallback, ok := k.fallback.(string); ok && k.isRequired() && fallback == "" {
			d.errs.Add(path, "", hintOf(k), "is missing")
		}
		return
	}
	if k.isList() {
		d.list(path, n, k)
		return
	}
	if n.Kind != KindScalar {
		d.wrongKind(path, n, expected(k))
		d.fallback(k)
		return
	}
	d.scalar(path, n, k)
}

// fallback sets a key to its default.
func (d *decoder) fallback(k Key) {
	switch t := k.target.(type) {
	case *string:
		*t, _ = k.fallback.(string)
	case *int:
		*t, _ = k.fallback.(int)
	case *int64:
		*t, _ = k.fallback.(int64)
	case *float64:
		*t, _ = k.fallback.(float64)
	case *bool:
		*t, _ = k.fallback.(bool)
	case **bool:
		*t = nil
	case *time.Duration:
		*t, _ = k.fallback.(time.Duration)
	case *[]string:
		texts, _ := k.fallback.([]string)
		*t = slices.Clone(texts)
	}
}

func (d *decoder) scalar(path string, n *Node, k Key) {
	switch t := k.target.(type) {
	case *string:
		d.text(path, n, k, t)
	case *int:
		if v, ok := d.integer(path, n, k, strconv.IntSize); ok {
			*t = int(v)
		}
	case *int64:
		if v, ok := d.integer(path, n, k, 64); ok {
			*t = v
		}
	case *float64:
		d.ratio(path, n, k, t)
	case *bool:
		if v, ok := d.boolean(path, n, k); ok {
			*t = v
		}
	case **bool:
		if v, ok := d.boolean(path, n, k); ok {
			*t = &v
		}
	case *time.Duration:
		d.duration(path, n, k, t)
	}
}

// text sets a valid text. It leaves the target of an invalid one empty, so that it causes no further errors.
func (d *decoder) text(path string, n *Node, k Key, target *string) {
	given := strconv.Quote(MaskUser(n.Text))
	if k.hidden {
		given = mask
	}
	v := n.Text
	if k.ignoreCase {
		v = strings.ToLower(v)
	}
	switch {
	case n.tag != "" && n.tag != "!!str" && (n.tag != "!!int" || !k.number):
		d.errs.Add(path, n.Source, "put it in quotes", "must be a text, not %s", strings.Trim(given, `"`))
	case v == "" && k.isRequired():
		d.errs.Add(path, n.Source, hintOf(k), "is empty")
	case len(k.choices) > 0 && !slices.Contains(k.choices, v):
		hint := ""
		if choice := spelling.Suggest(v, slices.Values(k.choices)); choice != "" {
			hint = "did you mean " + choice + "?"
		}
		d.errs.Add(path, n.Source, hint, "must be %s, not %s", expected(k), given)
	case v != "" && k.pattern != nil && !k.pattern.MatchString(v):
		d.errs.Add(path, n.Source, "", "%s is not %s", given, k.description)
	default:
		*target = v
	}
}

// boolean parses a flag. It sets an invalid one to its default.
func (d *decoder) boolean(path string, n *Node, k Key) (value, ok bool) {
	if value, ok = ParseBool(n.Text); !ok {
		d.errs.Add(path, n.Source, "use true, false, 1, 0, yes or no", "must be %s, not %q", expected(k), n.Text)
		d.fallback(k)
	}
	return value, ok
}

func (d *decoder) integer(path string, n *Node, k Key, bits int) (int64, bool) {
	v, err := strconv.ParseInt(n.Text, 10, bits)
	if err != nil || (n.tag != "" && n.tag != "!!int") {
		d.errs.Add(path, n.Source, "", "must be %s, not %q", expected(k), n.Text)
		return 0, false
	}
	if v < k.minimum || v > k.maximum {
		d.errs.Add(path, n.Source, "", "%d is out of range, must be %s", v, expected(k))
		return 0, false
	}
	return v, true
}

func (d *decoder) ratio(path string, n *Node, k Key, target *float64) {
	v, err := strconv.ParseFloat(n.Text, 64)
	if err != nil || !(v >= 0 && v <= 1) || n.tag != "" && n.tag != "!!int" && n.tag != "!!float" {
		d.errs.Add(path, n.Source, "", "must be %s, not %q", expected(k), n.Text)
		return
	}
	*target = v
}

func (d *decoder) duration(path string, n *Node, k Key, target *time.Duration) {
	v, err := time.ParseDuration(n.Text)
	switch {
	case err != nil:
		d.errs.Add(path, n.Source, "write a number with its unit, such as 500ms, 30s or 2m", "must be %s, not %q", expected(k), n.Text)
	case k.zeroDisables && v == 0:
		*target = 0
	case k.zeroDisables && int64(v) < k.minimum:
		d.errs.Add(path, n.Source, "0s turns it off", "must be at least %s, not %s", shortDuration(time.Duration(k.minimum)), n.Text)
	case int64(v) < k.minimum || int64(v) > k.maximum:
		d.errs.Add(path, n.Source, "", "must be more than zero, not %s", n.Text)
	default:
		*target = v
	}
}

func (d *decoder) list(path string, n *Node, k Key) {
	target, ok := k.target.(*[]string)
	if !ok {
		return
	}
	*target = nil
	switch {
	case n.Kind == KindList:
	case n.Kind == KindScalar && n.tag == "":
		for _, part := range SplitList(n.Text) {
			n.Items = append(n.Items, &Node{Kind: KindScalar, Text: part, Source: n.Source})
		}
	default:
		d.wrongKind(path, n, "a list of texts")
		return
	}
	for i, item := range n.Items {
		at := Indexed(path, i)
		if item.Kind != KindScalar {
			d.wrongKind(at, item, "a text")
			continue
		}
		var v string
		d.text(at, item, Key{required: true, pattern: k.pattern, description: k.description}, &v)
		*target = append(*target, v)
	}
	if k.required && len(n.Items) == 0 {
		d.errs.Add(path, n.Source, "remove the key to use its default", "the list is empty")
	}
}

// secret sets a key from its value or from the file named by its …File sibling.
func (d *decoder) secret(path string, n, file *Node, k Key) {
	target, ok := k.target.(*Secret)
	if !ok {
		return
	}
	*target = ""
	if k.file != nil {
		*k.file = ""
	}
	if n != nil && file != nil {
		d.errs.Add(path, file.Source, "remove one of them", "is set in addition to %sFile", path)
		return
	}
	var v string
	if file == nil {
		hidden := Text(k.name, &v, "", k.doc)
		hidden.hidden, hidden.pattern, hidden.description = true, k.pattern, k.description
		d.value(path, n, hidden)
		*target = Secret(v)
		return
	}
	d.value(path+"File", file, Text(k.secretFile(), &v, "", k.doc))
	if v == "" {
		return
	}
	secret, err := ReadSecret(v)
	switch {
	case err != nil:
		d.errs.Add(path+"File", file.Source, "", "%s", err)
	case k.pattern != nil && !k.pattern.MatchString(secret.Reveal()):
		d.errs.Add(path+"File", file.Source, "", "the content of %s is not %s", v, k.description)
	default:
		*target = secret
		if k.file != nil {
			*k.file = v
		}
	}
}

// expected describes the valid values of a key.
func expected(k Key) string {
	switch k.target.(type) {
	case *int, *int64:
		if k.maximum >= maxShown {
			return "a whole number of at least " + strconv.FormatInt(k.minimum, 10)
		}
		return "a whole number from " + strconv.FormatInt(k.minimum, 10) + " to " + strconv.FormatInt(k.maximum, 10)
	case *float64:
		return "a number from 0 to 1"
	case *bool, **bool:
		return "true or false"
	case *time.Duration:
		return "a duration"
	case *[]string:
		return "a list of texts"
	default:
		switch len(k.choices) {
		case 0:
			return "a text"
		case 1:
			return k.choices[0]
		default:
			if k.choices[0] == "" {
				return "empty or one of " + strings.Join(k.choices[1:], ", ")
			}
			return "one of " + strings.Join(k.choices, ", ")
		}
	}
}

// maxShown: messages do not show upper limits from this number on.
const maxShown = 1<<31 - 1

func hintOf(k Key) string {
	switch {
	case len(k.choices) > 0:
		return "use " + strings.Join(k.choices, " or ")
	case k.description != "":
		return "use " + k.description
	default:
		return k.doc
	}
}

// ParseBool parses a boolean (CONTRACT section 9).
func ParseBool(s string) (value, ok bool) {
	switch strings.ToLower(s) {
	case "true", "1", "yes":
		return true, true
	case "false", "0", "no":
		return false, true
	default:
		return false, false
	}
}

// SplitList splits s at commas, trims the parts and omits empty ones.
func SplitList(s string) []string {
	var parts []string
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}
