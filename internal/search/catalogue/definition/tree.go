package definition

import (
	"encoding/json"
	"errors"
	"strconv"
)

// treeReader builds nodes from the tokens of one file.
type treeReader struct {
	// file is its name for messages.
	file string
	// most is the maximum number of values, values the number read: most+1 if there are too many.
	most, values int
	// onDuplicate is called with the pointer of each duplicate member. The later one applies.
	onDuplicate func(pointer string)
	decoder     *json.Decoder
	// steps is the path of the current value. It becomes a pointer only for messages.
	steps []step
}

// step is a member, or an item if item is true.
type step struct {
	name  string
	index int
	item  bool
}

var errTooMany = errors.New("too many values")

func (t *treeReader) value() (*node, error) {
	token, err := t.decoder.Token()
	if err != nil {
		return nil, err
	}
	if t.values++; t.values > t.most {
		return nil, errTooMany
	}
	switch v := token.(type) {
	case bool:
		return &node{kind: kindBool, text: strconv.FormatBool(v), file: t.file}, nil
	case json.Number:
		return &node{kind: kindNumber, text: v.String(), file: t.file}, nil
	case string:
		return &node{kind: kindText, text: v, file: t.file}, nil
	case json.Delim:
		if v == '[' {
			return t.list()
		}
		return t.object()
	default:
		return &node{kind: kindNull, file: t.file}, nil
	}
}

// below reads the value of a step.
func (t *treeReader) below(s step) (*node, error) {
	t.steps = append(t.steps, s)
	n, err := t.value()
	t.steps = t.steps[:len(t.steps)-1]
	return n, err
}

func (t *treeReader) list() (*node, error) {
	n := &node{kind: kindList, file: t.file}
	for t.decoder.More() {
		item, err := t.below(step{index: len(n.items), item: true})
		if err != nil {
			return nil, err
		}
		n.items = append(n.items, item)
	}
	_, err := t.decoder.Token()
	return n, err
}

func (t *treeReader) object() (*node, error) {
	n := &node{kind: kindObject, file: t.file}
	at := map[string]int{}
	var here *string
	for t.decoder.More() {
		token, err := t.decoder.Token()
		if err != nil {
			return nil, err
		}
		name, _ := token.(string)
		value, err := t.below(step{name: name})
		if err != nil {
			return nil, err
		}
		if i, is := at[name]; is {
			n.members[i].value = value
			if here == nil {
				here = new(t.pointer())
			}
			t.onDuplicate(within(*here, name))
			continue
		}
		at[name] = len(n.members)
		n.members = append(n.members, member{name, value})
	}
	_, err := t.decoder.Token()
	return n, err
}

// pointer returns the JSON pointer of the current value.
func (t *treeReader) pointer() string {
	pointer := ""
	for _, s := range t.steps {
		if s.item {
			s.name = strconv.Itoa(s.index)
		}
		pointer = within(pointer, s.name)
	}
	return pointer
}

// maxPointerBytes is far more than what messages show of a pointer.
const maxPointerBytes = 400

// within returns the JSON pointer of a member or an item, truncated: below a key of megabytes, the pointer of every value would
// be as long.
func within(pointer, name string) string {
	if len(pointer) >= maxPointerBytes {
		return pointer
	}
	return below(pointer, name[:min(len(name), maxPointerBytes)])
}
