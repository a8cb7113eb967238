package external

import (
	"errors"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"tutti/internal/base/jsontext"
	"tutti/schemas/jsontree"
	"tutti/schemas/violation"
)

// maxPathSteps bounds the depth of a path.
const maxPathSteps = 32

// jsonPath selects values of an analysis by names, indices and [*], such as $.files[*].info['donor id'].
type jsonPath []pathStep

type pathStep struct {
	name  string
	index int
	// item is set for a step into an array, every for [*].
	item, every bool
}

// located is a value with the JSON pointer to it.
type located struct {
	pointer string
	value   *jsontree.Value
}

// parseJSONPath reads a path; a leading "$" or "$." may be missing. The error's text is safe to show.
func parseJSONPath(text string) (jsonPath, error) {
	rest := text
	bare := true // a name may begin here without a dot
	if after, ok := strings.CutPrefix(rest, "$"); ok && (after == "" || after[0] == '.' || after[0] == '[') {
		rest, bare = after, false
	}
	var path jsonPath
	for rest != "" || len(path) == 0 {
		var step pathStep
		var err error
		switch {
		case rest == "":
			return nil, errors.New("names nothing in the analysis")
		case rest[0] == '[':
			step, rest, err = bracketStep(rest)
		case rest[0] == '.':
			step, rest, err = nameStep(rest[1:])
		case bare:
			step, rest, err = nameStep(rest)
		default:
			err = errors.New("needs a dot or a bracket before " + violation.Quoted(rest))
		}
		if err != nil {
			return nil, err
		}
		bare = false
		if path = append(path, step); len(path) > maxPathSteps {
			return nil, errors.New("has more than " + strconv.Itoa(maxPathSteps) + " steps")
		}
	}
	return path, nil
}

// nameStep reads a name up to the next dot or bracket.
func nameStep(rest string) (pathStep, string, error) {
	end := strings.IndexAny(rest, ".[")
	if end < 0 {
		end = len(rest)
	}
	name := rest[:end]
	if name == "" {
		return pathStep{}, "", errors.New("has an empty step")
	}
	for _, r := range name {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-@:$", r) {
			return pathStep{}, "", errors.New("has the character " + violation.Quoted(string(r)) + " in a name; write such a name as ['name']")
		}
	}
	return pathStep{name: name}, rest[end:], nil
}

// bracketStep reads [0], [*], ['name'] or ["name"].
func bracketStep(rest string) (pathStep, string, error) {
	if len(rest) > 1 && (rest[1] == '\'' || rest[1] == '"') {
		name, after, ok := strings.Cut(rest[2:], rest[1:2])
		after, closed := strings.CutPrefix(after, "]")
		if !ok || !closed || name == "" {
			return pathStep{}, "", errors.New("has a name in brackets that is empty or has no closing quote")
		}
		return pathStep{name: name}, after, nil
	}
	inner, after, ok := strings.Cut(rest[1:], "]")
	if !ok {
		return pathStep{}, "", errors.New("has a bracket that is not closed")
	}
	if inner == "*" {
		return pathStep{item: true, every: true}, after, nil
	}
	index, err := strconv.ParseUint(inner, 10, 31)
	if err != nil || strings.HasPrefix(inner, "+") {
		return pathStep{}, "", errors.New("has " + violation.Quoted(inner) + " in brackets, which is neither an index nor * nor a quoted name")
	}
	return pathStep{item: true, index: int(index)}, after, nil
}

// String writes the path in full.
func (p jsonPath) String() string {
	b := []byte("$")
	for _, s := range p {
		switch {
		case s.every:
			b = append(b, "[*]"...)
		case s.item:
			b = append(strconv.AppendInt(append(b, '['), int64(s.index), 10), ']')
		case strings.Contains(s.name, "'"):
			b = append(append(append(b, `["`...), s.name...), `"]`...)
		default:
			b = append(append(append(b, "['"...), s.name...), "']"...)
		}
	}
	return string(b)
}

// find calls each for the selected values, in order, until it returns false.
func (p jsonPath) find(v *jsontree.Value, each func(located) bool) {
	p.walk(nil, v, each)
}

func (p jsonPath) walk(pointer []byte, v *jsontree.Value, each func(located) bool) bool {
	if len(p) == 0 {
		return each(located{string(pointer), v})
	}
	step, rest := p[0], p[1:]
	if !step.item {
		if m := v.Member(step.name); m != nil {
			return rest.walk(jsontext.AppendPointer(slices.Clip(pointer), step.name), m, each)
		}
		return true
	}
	from, to := step.index, step.index+1
	if step.every {
		from, to = 0, len(v.Items())
	}
	for i := from; i < min(to, len(v.Items())); i++ {
		item := append(slices.Clip(pointer), "/"+strconv.Itoa(i)...)
		if !rest.walk(item, &v.Items()[i], each) {
			return false
		}
	}
	return true
}
