package external

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"tutti/internal/core"
	"tutti/schemas/jsontree"
	"tutti/schemas/violation"
)

// Bounds of the external validations of one analysis.
const (
	// maxCalls is how many different URLs are asked.
	maxCalls = 1000
	// maxAtOnce is how many are asked side by side.
	maxAtOnce = 8
	// maxSilent is after how many URLs of a host without an answer the others of that host are not asked any more.
	maxSilent = 3
)

const keywordExternal = "externalValidations"

// Validation is one external validation, understood.
type Validation struct {
	template urlTemplate
	path     jsonPath
}

// ParseValidations reads external validations; the pointers of the faults begin with the index of what is at fault.
func ParseValidations(given []core.ExternalValidation) ([]Validation, *violation.List) {
	found := &violation.List{}
	all := make([]Validation, 0, len(given))
	for i, g := range given {
		template, err := parseTemplate(g.URL)
		if err != nil {
			found.Add(core.Violation{Pointer: "/" + strconv.Itoa(i) + "/url", Message: err.Error(), Keyword: keywordExternal})
		}
		path, err := parseJSONPath(g.JSONPath)
		if err != nil {
			found.Add(core.Violation{Pointer: "/" + strconv.Itoa(i) + "/jsonPath", Message: err.Error(), Keyword: keywordExternal})
		}
		all = append(all, Validation{template, path})
	}
	return all, found
}

func CheckExternals(given []core.ExternalValidation) *violation.List {
	_, found := ParseValidations(given)
	return found
}

// query is one URL with the places of the values that it asks about.
type query struct {
	url      string
	host     string
	value    string
	pointers []string
	result   result
}

// result says why a value is not valid; an empty message says that it is.
type result struct {
	message      string
	retryable    bool
	unresponsive bool
}

// Check asks about every value and adds what is not valid to found. An error says that ctx ended.
func (a *Client) Check(ctx context.Context, found *violation.List, externals []Validation, study string, tree *jsontree.Value) error {
	questions := a.queries(found, externals, study, tree)
	if len(questions) > maxCalls {
		found.Add(core.Violation{
			Pointer: questions[maxCalls].pointers[0], Keyword: keywordExternal,
			Message: "the analysis has more than " + violation.Counted(maxCalls, "value", "different values") + " that external services must be asked about",
		})
		return nil
	}
	silent := unresponsiveHosts{hosts: map[string]int{}}
	budget, cancel := context.WithTimeout(ctx, a.cfg.TotalTimeout)
	defer cancel()
	var group errgroup.Group
	group.SetLimit(maxAtOnce)
	for _, q := range questions {
		group.Go(func() error {
			if silent.has(q.host) {
				q.result = result{message: "was not asked about: the service does not answer", retryable: true}
				return nil
			}
			q.result = a.call(budget, q)
			if q.result.unresponsive {
				silent.add(q.host)
			}
			return nil
		})
	}
	_ = group.Wait() // the calls give answers, no errors
	if ctx.Err() != nil {
		return core.WrapError(core.CodeUnavailable, "the check was canceled", ctx.Err())
	}
	for _, q := range questions {
		for _, place := range q.pointers {
			if q.result.message != "" {
				found.Add(core.Violation{
					Pointer: place, Message: q.value + " " + q.result.message, Keyword: keywordExternal, Retryable: q.result.retryable,
				})
			}
		}
	}
	return nil
}

// queries gives what there is to ask, each URL once, in the order of the values. What cannot be asked is added to
// found.
func (a *Client) queries(found *violation.List, externals []Validation, study string, tree *jsontree.Value) []*query {
	var all []*query
	known := map[string]*query{}
	for _, e := range externals {
		e.path.find(tree, func(l located) bool {
			text, scalar := scalarText(l.value)
			if l.value.Kind == jsontree.KindNull {
				return true
			}
			full, err := "", error(nil)
			message := "is " + l.value.Kind.TypeName() + ", which no external service can be asked about"
			if scalar {
				if full, err = e.template.fill(study, text); err != nil {
					message, scalar = err.Error(), false
				}
			}
			if !scalar {
				found.Add(core.Violation{Pointer: l.pointer, Message: message, Keyword: keywordExternal})
				return !found.Truncated
			}
			q := known[full]
			if q == nil {
				q = &query{url: full, host: e.template.origin, value: violation.Quoted(text)}
				known[full] = q
				all = append(all, q)
			}
			if !slices.Contains(q.pointers, l.pointer) && len(q.pointers) < violation.MaxViolations {
				q.pointers = append(q.pointers, l.pointer)
			}
			return len(all) <= maxCalls
		})
		if len(all) > maxCalls {
			break
		}
	}
	return all
}

// scalarText gives the text of a scalar.
func scalarText(v *jsontree.Value) (string, bool) {
	switch v.Kind {
	case jsontree.KindString, jsontree.KindNumber, jsontree.KindBool:
		return strings.ToValidUTF8(v.Text, "\uFFFD"), true
	default:
		return "", false
	}
}

// unresponsiveHosts counts the URLs of each host that had no answer.
type unresponsiveHosts struct {
	mu    sync.Mutex
	hosts map[string]int
}

func (s *unresponsiveHosts) has(host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.hosts[host] >= maxSilent
}

func (s *unresponsiveHosts) add(host string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hosts[host]++
}
