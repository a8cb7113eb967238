package external

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"tutti/internal/core"
	"tutti/internal/core/datamodel"
	"tutti/schemas/jsontree"
	"tutti/schemas/violation"
)

// Bounds of the external validations of one analysis.
const (
	// maxCalls bounds the different URLs that are called.
	maxCalls = 1000
	// maxAtOnce bounds the concurrent calls.
	maxAtOnce = 8
	// maxSilent is the number of failed URLs after which a host is not called any more for the analysis.
	maxSilent = 3
)

const keywordExternal = "externalValidations"

// Validation is a parsed external validation.
type Validation struct {
	template urlTemplate
	path     jsonPath
}

// ParseValidations parses external validations. The pointers of violations begin with the index of the validation.
func ParseValidations(given []datamodel.ExternalValidation) ([]Validation, *violation.List) {
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

// CheckExternals returns the violations of external validations.
func CheckExternals(given []datamodel.ExternalValidation) *violation.List {
	_, found := ParseValidations(given)
	return found
}

// query is one URL with the pointers to the values that it validates.
type query struct {
	url      string
	host     string
	value    string
	pointers []string
	result   result
}

// result says why a value is not valid; the message of a valid one is empty.
type result struct {
	message      string
	retryable    bool
	unresponsive bool
}

// Check validates every value and adds violations to found. It returns CodeUnavailable if ctx ends.
func (a *Client) Check(ctx context.Context, found *violation.List, externals []Validation, study string, tree *jsontree.Value) error {
	questions := a.queries(found, externals, study, tree)
	if len(questions) > maxCalls {
		found.Add(core.Violation{
			Pointer: questions[maxCalls].pointers[0], Keyword: keywordExternal,
			Message: "the analysis has more than " + violation.Counted(maxCalls, "value", "different values") + " that external services must check",
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
				q.result = result{message: "was not checked: the service does not respond", retryable: true}
				return nil
			}
			q.result = a.call(budget, q)
			if q.result.unresponsive {
				silent.add(q.host)
			}
			return nil
		})
	}
	_ = group.Wait() // the calls return results, no errors
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

// queries returns the calls to make, each URL once, in the order of the values. Values that cannot be sent are added to found.
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
			message := "is " + l.value.Kind.TypeName() + ", which cannot be sent to an external service"
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

// scalarText returns the text of a scalar.
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
