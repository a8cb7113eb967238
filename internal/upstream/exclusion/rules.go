package exclusion

import (
	"strings"

	"tutti/internal/base/jsontext"
	"tutti/internal/core"
	"tutti/internal/upstream"
)

// Rules are the exclusion rules of one repository. They are safe for concurrent use.
type Rules struct {
	organizations []string
	excluded      map[string]struct{} // the organizations
	// own are the lists that contain ids of records or organizations, body those whose ids are within a record's body.
	own  []ownList
	body *node
}

// ownList is a list of ids of records or organizations.
type ownList struct {
	upstream.Exclusion
	ids map[string]struct{}
}

// node is a step of the paths of all lists within a body: the members that lead on, and the list that the values here belong to.
type node struct {
	members map[string]*node
	list    string
	ids     map[string]struct{}
}

// New returns the rules of a repository: lists describes its lists, ids holds the ids of each by its name. It returns nil without ids.
func New(lists []upstream.Exclusion, ids map[string][]string) *Rules {
	r := new(Rules)
	for _, list := range lists {
		of := ids[list.List]
		if len(of) == 0 {
			continue
		}
		set := make(map[string]struct{}, len(of))
		for _, id := range of {
			set[id] = struct{}{}
		}
		if list.Value == nil {
			r.addPath(list, set)
			continue
		}
		r.own = append(r.own, ownList{list, set})
		if list.List == upstream.ExcludeOrganizations {
			r.organizations, r.excluded = of, set
		}
	}
	if len(r.own) == 0 && r.body == nil {
		return nil
	}
	return r
}

func (r *Rules) addPath(list upstream.Exclusion, ids map[string]struct{}) {
	if r.body == nil {
		r.body = new(node)
	}
	at := r.body
	for name := range strings.SplitSeq(list.Path, ".") {
		if at.members == nil {
			at.members = make(map[string]*node)
		}
		if at.members[name] == nil {
			at.members[name] = new(node)
		}
		at = at.members[name]
	}
	at.list, at.ids = list.List, ids
}

// Organizations returns the excluded organizations; nil Rules have none.
func (r *Rules) Organizations() []string {
	if r == nil {
		return nil
	}
	return r.organizations
}

// Of returns the rule that applies to a record, nil for none. The ids within the body of a record over the size limit are not known.
func (r *Rules) Of(rec core.Record) *core.Exclusion {
	for _, list := range r.own {
		id := list.Value(rec)
		if _, excluded := list.ids[id]; excluded {
			return &core.Exclusion{List: list.List, ID: id}
		}
	}
	if r.body == nil {
		return nil
	}
	return r.body.find(rec.Body, jsontext.Span{End: len(rec.Body)})
}

// find returns the first listed id of the value v of body, which is JSON. As any match excludes, all of several members with the same
// name count.
func (n *node) find(body []byte, v jsontext.Span) (found *core.Exclusion) {
	jsontext.Items(body, v, func(item jsontext.Span) bool {
		if n.ids != nil {
			found = n.match(item.Of(body))
		}
		if n.members != nil && found == nil {
			jsontext.Members(body[:item.End], item.Start, func(name []byte, escaped bool, value jsontext.Span) bool {
				next := n.members[string(name)]
				if escaped {
					next = n.members[jsontext.Unescape(name)]
				}
				if next != nil {
					found = next.find(body, value)
				}
				return found == nil
			})
		}
		return found == nil
	})
	return found
}

// match returns the rule for an id as it is written in a record: a text, or a number.
func (n *node) match(raw []byte) *core.Exclusion {
	text := raw
	if len(raw) >= 2 && raw[0] == '"' {
		text = raw[1 : len(raw)-1]
	}
	if _, listed := n.ids[string(text)]; listed {
		return &core.Exclusion{List: n.list, ID: string(text)}
	}
	for _, c := range text {
		if c == '\\' {
			id := jsontext.Unescape(text)
			if _, listed := n.ids[id]; listed {
				return &core.Exclusion{List: n.list, ID: id}
			}
			return nil
		}
	}
	return nil
}
