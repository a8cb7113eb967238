package validation

import (
	"cmp"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"tutti/internal/base/jsontext"
	"tutti/internal/base/order"
	"tutti/internal/core"
	"tutti/schemas/jsontree"
	"tutti/schemas/pattern"
	"tutti/schemas/violation"
)

// failure is a keyword that a value does not satisfy.
type failure struct {
	schema  *jsonschema.Schema
	keyword string
	// path is the library's location of the keyword below its schema, message the library's own.
	path, message string
	value         *jsontree.Value
	pointer       string
	// ofName is set if a rule about the name of a property failed; value is then the name.
	ofName bool
	// order is the offset of the value in its text, at the location of the keyword.
	order uint32
	at    string
}

// violations returns the violations of an error of the library, in the order of the document.
func (r *Schema) violations(err *jsonschema.ValidationError, root *jsontree.Value) *violation.List {
	var all []failure
	r.failures(err, root, &all)
	order.Stable(all, func(a, b failure) int {
		return cmp.Or(cmp.Compare(a.order, b.order), cmp.Compare(rank(a.keyword), rank(b.keyword)), cmp.Compare(a.at, b.at))
	})
	found := &violation.List{}
	for i := range all {
		if all[i].report(found); found.Truncated {
			break
		}
	}
	return found
}

// rank orders the failed keywords of one value.
func rank(keyword string) int {
	order := []string{
		"type", "const", "enum", "format", "minProperties", "maxProperties", "required", "dependencies", "dependentRequired",
	}
	if i := slices.Index(order, keyword); i >= 0 {
		return i
	}
	return len(order)
}

// failures adds the failures that caused an error.
func (r *Schema) failures(e *jsonschema.ValidationError, root *jsontree.Value, all *[]failure) {
	location, keyword, path := r.keywordOf(e)
	s := r.known[location]
	switch {
	case e.Message == "": // the wrapper of several failures of one schema
		keyword = ""
	case keyword == "anyOf" || keyword == "oneOf":
		alternatives := s.AnyOf
		if keyword == "oneOf" {
			alternatives = s.OneOf
		}
		if len(e.Causes) == len(alternatives) {
			if r.stop == nil && slices.ContainsFunc(e.Causes, func(cause *jsonschema.ValidationError) bool {
				var own []failure
				r.failures(cause, root, &own)
				return own == nil
			}) {
				return // only expressions exclude an alternative
			}
			f := r.failureOf(e, root)
			if i := intended(alternatives, f.value); i >= 0 {
				r.failures(e.Causes[i], root, all)
				return
			}
		}
	}
	if len(e.Causes) > 0 && keyword != "anyOf" && keyword != "oneOf" && keyword != "minContains" {
		for _, cause := range e.Causes {
			if !r.consequence(cause, e) {
				r.failures(cause, root, all)
			}
		}
		return
	}
	if keyword == "format" && s != nil && s.Format == "regex" && r.stop == nil || strings.HasPrefix(e.Message, "patternProperty ") {
		return // preparation reports the violations of expressions
	}
	f := r.failureOf(e, root)
	f.schema, f.keyword, f.path = s, keyword, path
	*all = append(*all, f)
}

// consequence reports whether a cause of an error of a schema only follows from another one: a failed part of the schema, such as then,
// leaves the properties and items that it describes unevaluated.
func (r *Schema) consequence(cause, e *jsonschema.ValidationError) bool {
	const keyword = "/unevaluated"
	own := strings.TrimPrefix(cause.KeywordLocation, e.KeywordLocation)
	if !strings.HasPrefix(own, keyword) || !slices.ContainsFunc(e.Causes, func(other *jsonschema.ValidationError) bool {
		return !strings.HasPrefix(strings.TrimPrefix(other.KeywordLocation, e.KeywordLocation), keyword)
	}) {
		return false
	}
	token, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(cause.InstanceLocation, e.InstanceLocation), "/"), "/")
	s := r.known[strings.TrimSuffix(cause.AbsoluteKeywordLocation, own)]
	return s != nil && describes(s, unescaped(token), strings.HasPrefix(own, "/unevaluatedItems"))
}

// describes reports whether a schema, or one that it applies to the same value, has a keyword for a property or an item.
func describes(s *jsonschema.Schema, name string, item bool) bool {
	index, err := strconv.Atoi(name)
	item = item && err == nil
	own := extensionOf(s)
	prefix, _ := s.Items.([]*jsonschema.Schema)
	switch {
	case item && (own.items != nil || s.Contains != nil || index < max(len(prefix), len(s.PrefixItems))):
		return true
	case !item && (own.additional != nil || hasProperty(s, name)):
		return true
	}
	return slices.ContainsFunc(edgesOf(s), func(e edge) bool { return e.step == nil && !e.dynamic && describes(e.schema, name, item) })
}

// keywordOf splits the location of what failed into that of a schema, a keyword and the path in the keyword's value.
func (r *Schema) keywordOf(e *jsonschema.ValidationError) (location, keyword, path string) {
	at := e.AbsoluteKeywordLocation
	if e.Message == "not allowed" && r.known[at] != nil {
		return at, "false", ""
	}
	for rest := at; ; {
		i := strings.LastIndexByte(rest, '/')
		if i < 0 || strings.LastIndexByte(rest, '#') > i {
			return "", "", ""
		}
		rest = rest[:i]
		if r.known[rest] != nil {
			keyword, path, _ = strings.Cut(at[i+1:], "/")
			return rest, keyword, path
		}
	}
}

// failureOf returns the failure of an error, with its location.
func (r *Schema) failureOf(e *jsonschema.ValidationError, root *jsontree.Value) failure {
	f := failure{message: e.Message, value: root, at: e.AbsoluteKeywordLocation}
	var pointer []byte
	name := ""
	for escaped := range strings.SplitSeq(strings.TrimPrefix(e.InstanceLocation, "/"), "/") {
		if e.InstanceLocation == "" {
			break
		}
		name = unescaped(escaped)
		pointer = jsontext.AppendPointer(pointer, name)
		next := f.value.Member(name)
		if f.value.Kind == jsontree.KindArray {
			if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(f.value.Items()) {
				next = &f.value.Items()[i]
			}
		}
		if next == nil {
			break
		}
		f.value = next
	}
	f.pointer, f.order = string(pointer), f.value.From
	if f.ofName = aboutName(e.KeywordLocation); f.ofName {
		f.value = &jsontree.Value{Kind: jsontree.KindString, Text: name}
	}
	return f
}

// unescaped reads a token of the library's locations.
func unescaped(token string) string {
	if token == emptyName {
		return ""
	}
	if plain, err := url.PathUnescape(token); err == nil {
		token = plain
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(token)
}

// aboutName reports whether a location contains the keyword propertyNames, not only a property of this name.
func aboutName(location string) bool {
	if !strings.Contains(location, "/propertyNames") {
		return false
	}
	named := false
	for token := range strings.SplitSeq(location, "/") {
		switch {
		case named:
			named = false
		case token == "propertyNames":
			return true
		default:
			named = slices.Contains([]string{"properties", "patternProperties", "dependencies", "dependentSchemas"}, token)
		}
	}
	return false
}

// report adds the violations of a failure.
func (f *failure) report(found *violation.List) {
	s, v := f.schema, f.value
	add := func(keyword, message string) {
		if f.ofName {
			keyword, message = "propertyNames", "its name "+message
		}
		found.Add(core.Violation{Pointer: f.pointer, Message: message, Keyword: keyword})
	}
	if s == nil {
		add("schema", "is not valid")
		return
	}
	switch f.keyword {
	case "required":
		for _, name := range s.Required {
			if v.Member(name) == nil {
				add("required", "the property "+violation.Quoted(name)+" is missing")
			}
		}
	case "additionalItems":
		add(f.keyword, moreItems)
	case "false", "not":
		add(f.excluded())
	case "minContains", "maxContains":
		add(f.contained())
	case "dependencies", "dependentRequired":
		name, i, _ := strings.Cut(f.path, "/")
		name = unescaped(name)
		names, _ := s.Dependencies[name].([]string)
		if f.keyword == "dependentRequired" {
			names = s.DependentRequired[name]
		}
		if n, err := strconv.Atoi(i); err == nil && n < len(names) {
			add(f.keyword, "the property "+violation.Quoted(names[n])+" is missing beside "+violation.Quoted(name))
		}
	case "anyOf", "oneOf":
		add(f.keyword, f.alternatives())
	default:
		add(f.keyword, f.scalar())
	}
}

const (
	moreProperties = "is not a property that the schema allows"
	moreItems      = "is an item more than the schema allows"
)

// excluded returns the keyword and the message of a schema that excludes the value.
func (f *failure) excluded() (keyword, message string) {
	tokens := strings.Split(strings.TrimSuffix(f.at, "/not"), "/")
	last := tokens[len(tokens)-1]
	if f.keyword == "false" || f.schema.Not.Format == anything {
		parent := ""
		if len(tokens) > 1 {
			parent = tokens[len(tokens)-2]
		}
		switch {
		case slices.Contains([]string{"properties", "patternProperties", "definitions", "$defs"}, parent):
		case last == "additionalProperties" || last == "unevaluatedProperties":
			return last, moreProperties
		case last == "items" || last == "additionalItems" || last == "unevaluatedItems":
			return last, moreItems
		}
	}
	if f.keyword == "false" {
		return "false", "is not allowed"
	}
	switch not := f.schema.Not; {
	case not.Always != nil:
		return "not", "is not allowed"
	case not.Enum != nil:
		return "not", "must not be " + enumeration(not.Enum)
	case not.Constant != nil:
		return "not", "must not be " + jsontree.Format(not.Constant[0])
	case len(not.Required) == 1:
		return "not", "must not have the property " + violation.Quoted(not.Required[0])
	default:
		return "not", "is excluded by the schema"
	}
}

// contained returns the keyword and the message of an array with too few or too many items of a kind.
func (f *failure) contained() (keyword, message string) {
	matched := f.message[strings.LastIndexByte(f.message, ' ')+1:]
	s := f.schema
	if f.keyword == "maxContains" {
		return f.keyword, "must have at most " + violation.Counted(s.MaxContains, "item", "items") + " matching the schema of contains, not " + matched
	}
	what := "matching the schema of contains"
	if s.Contains.Constant != nil {
		what = "that is " + jsontree.Format(s.Contains.Constant[0])
	}
	if s.MinContains > 1 {
		return "minContains", "must have at least " + strconv.Itoa(s.MinContains) + " items " + what + ", not " + matched
	}
	return "contains", "must have an item " + what
}

// alternatives explains why not exactly one alternative matches.
func (f *failure) alternatives() string {
	n := max(len(f.schema.AnyOf), 1)
	if f.keyword == "oneOf" {
		n = len(f.schema.OneOf)
		var i, j int
		if _, err := fmt.Sscanf(f.message, "valid against schemas at indexes %d and %d", &i, &j); err == nil {
			return "matches the alternatives " + strconv.Itoa(i+1) + " and " + strconv.Itoa(j+1) + " of " + strconv.Itoa(n) + ", but must match only one"
		}
	}
	return "matches none of the " + strconv.Itoa(n) + " alternatives"
}

// scalar returns the message of a keyword about a whole value.
func (f *failure) scalar() string {
	s, v := f.schema, f.value
	switch f.keyword {
	case "type":
		return "must be " + typeNames(s.Types) + ", not " + v.Kind.TypeName()
	case "const":
		return "must be " + jsontree.Format(s.Constant[0])
	case "enum":
		if len(s.Enum) == 0 {
			return "has no valid value: the enum of the schema is empty"
		}
		return "must be one of " + enumeration(s.Enum)
	case "format":
		if s.Format != "regex" {
			return "is not a valid " + s.Format
		}
		if _, err := pattern.Compile(v.Text); err != nil {
			return expressionFault(err)
		}
		return "is not a valid regular expression"
	case "pattern":
		text := ""
		if own := extensionOf(s).pattern; own != nil {
			text = own.String()
		} else if s.Pattern != nil {
			text = s.Pattern.String()
		}
		return "must match the pattern " + violation.Shortened(text, 2*violation.MaxQuotedRunes)
	case "minimum":
		return "must be at least " + numberText(s.Minimum)
	case "maximum":
		return "must be at most " + numberText(s.Maximum)
	case "exclusiveMinimum":
		return "must be greater than " + numberText(s.ExclusiveMinimum)
	case "exclusiveMaximum":
		return "must be less than " + numberText(s.ExclusiveMaximum)
	case "multipleOf":
		return "must be a multiple of " + numberText(s.MultipleOf)
	default:
		return f.size()
	}
}

// size returns the message of a keyword about the number of characters, items or properties.
func (f *failure) size() string {
	s, v := f.schema, f.value
	between := func(word string, limit, got int, singular, plural string) string {
		return "must have at " + word + " " + violation.Counted(limit, singular, plural) + ", not " + strconv.Itoa(got)
	}
	switch f.keyword {
	case "minLength":
		return between("least", s.MinLength, utf8.RuneCountInString(v.Text), "character", "characters")
	case "maxLength":
		return between("most", s.MaxLength, utf8.RuneCountInString(v.Text), "character", "characters")
	case "minItems":
		return between("least", s.MinItems, len(v.Items()), "item", "items")
	case "maxItems":
		return between("most", s.MaxItems, len(v.Items()), "item", "items")
	case "minProperties":
		return between("least", s.MinProperties, len(v.Members()), "property", "properties")
	case "maxProperties":
		return between("most", s.MaxProperties, len(v.Members()), "property", "properties")
	case "uniqueItems":
		var i, j int
		if _, err := fmt.Sscanf(f.message, "items at index %d and %d are equal", &i, &j); err == nil {
			return "the items " + strconv.Itoa(i) + " and " + strconv.Itoa(j) + " are equal"
		}
		return "must not have equal items"
	default:
		return "is not valid by " + f.keyword
	}
}

// intended returns the index of the one alternative that was clearly meant, -1 when there is none.
func intended(alternatives []*jsonschema.Schema, v *jsontree.Value) int {
	for _, strict := range []bool{true, false} {
		intended, several := -1, false
		for i, s := range alternatives {
			if plausible(s, v, strict) {
				several = intended >= 0
				intended = i
			}
			if several {
				return -1
			}
		}
		if intended >= 0 {
			return intended
		}
	}
	return -1
}

// plausible reports whether v is not clearly excluded: by its type or, if strict, by a constant for it or for one of its
// properties.
func plausible(s *jsonschema.Schema, v *jsontree.Value, strict bool) bool {
	for range maxInPlace {
		ref := cmp.Or(s.Ref, s.RecursiveRef, s.DynamicRef)
		if ref == nil || s.Types != nil {
			break
		}
		s = ref
	}
	switch {
	case s.Always != nil:
		return *s.Always
	case !allows(s.Types, v), !possible(s, v, strict):
		return false
	case !strict:
		return true
	}
	members := v.Members()
	for i := range members[:min(len(members), violation.MaxListed)] {
		own := propertiesOf(s)[members[i].Name]
		if own != nil && !possible(own, &members[i].Value, true) {
			return false
		}
	}
	return true
}

// possible reports whether the constants of a schema allow a value or, when not strict, a value of its kind.
func possible(s *jsonschema.Schema, v *jsontree.Value, strict bool) bool {
	if extensionOf(s).nothing {
		return false
	}
	for _, choice := range [][]any{s.Constant, s.Enum} {
		if choice == nil || slices.ContainsFunc(choice, v.Equals) {
			continue
		}
		texts := slices.ContainsFunc(choice, func(c any) bool { _, ok := c.(string); return ok })
		if strict || v.Kind == jsontree.KindString != texts {
			return false
		}
	}
	return true
}

func allows(types []string, v *jsontree.Value) bool {
	return types == nil || slices.ContainsFunc(types, func(name string) bool {
		return name == v.Kind.String() || name == "integer" && v.Kind == jsontree.KindNumber && jsontree.IsInteger(v.Text)
	})
}

// typeNames names types as a message does: "a string or null".
func typeNames(types []string) string {
	var words []string
	for _, k := range []jsontree.Kind{jsontree.KindObject, jsontree.KindArray, jsontree.KindString, jsontree.KindNumber, jsontree.KindBool, jsontree.KindNull} {
		if slices.Contains(types, k.String()) {
			words = append(words, k.TypeName())
		} else if k == jsontree.KindNumber && slices.Contains(types, "integer") {
			words = append(words, "an integer")
		}
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// enumeration joins the values of an enumeration, shortened.
func enumeration(choice []any) string {
	words := make([]string, 0, violation.MaxListed)
	for _, c := range choice[:min(len(choice), violation.MaxListed)] {
		words = append(words, jsontree.Format(c))
	}
	out := violation.Listed(words)
	if more := len(choice) - violation.MaxListed; more > 0 {
		out += " and " + strconv.Itoa(more) + " more"
	}
	return out
}

// numberText writes a number of a schema.
func numberText(r *big.Rat) string {
	if r.IsInt() {
		return r.RatString()
	}
	near, _ := r.Float64()
	return strconv.FormatFloat(near, 'g', -1, 64)
}
