package testkit

import (
	"fmt"
	"html"
	"io"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
)

// Defaults of Lyric's pages.
const (
	lyricPage     = 1
	lyricPageSize = 20
)

// lyricCall is a parsed call.
type lyricCall struct {
	route    LyricRoute
	category string
	id       string
	compound bool
	page     LyricPageCall
	// faults are Lyric's errors about the parameters.
	faults []string
}

// parse parses a call from the path as received; no segment is decoded before the path is split.
func (s *LyricServer) parse(method, raw string, query url.Values) lyricCall {
	call := lyricCall{route: LyricRouteOther}
	rest, ok := strings.CutPrefix(raw, s.cfg.BasePath+"/")
	if query := method == http.MethodPost && strings.HasSuffix(rest, "/query"); !ok || method != http.MethodGet && !query {
		return call
	}
	segments := strings.Split(rest, "/")
	for i, segment := range segments {
		decoded, err := url.PathUnescape(segment)
		if err != nil {
			return call
		}
		segments[i] = decoded
	}
	if slices.Contains(segments, "") || !s.setRoute(&call, method, segments) {
		return call
	}
	if call.route != LyricRouteAlive {
		s.parameters(&call, query)
	}
	return call
}

// setRoute sets the route and the arguments of a call from its path, and reports whether there is such a route.
func (s *LyricServer) setRoute(call *lyricCall, method string, segments []string) bool {
	n := len(segments)
	ofData := n >= 3 && segments[0] == "data" && segments[1] == "category"
	switch {
	case s.cfg.Dictionary != nil && method == http.MethodPost && n == 6 && ofData && segments[3] == "organization":
		call.route, call.category, call.page.Organization = LyricRouteQuery, segments[2], segments[4]
	case method == http.MethodPost:
	case slices.Equal(segments, []string{"health"}):
		call.route = LyricRouteAlive
	case n == 2 && segments[0] == "category":
		call.route, call.category = LyricRouteCategory, segments[1]
	case s.cfg.Dictionary != nil && n == 3 && segments[0] == "dictionary" && segments[1] == "category":
		call.route, call.category = LyricRouteDictionary, segments[2]
	case ofData:
		setDataRoute(call, segments)
	}
	return call.route != LyricRouteOther
}

// setDataRoute is setRoute for the lists and records of a category.
func setDataRoute(call *lyricCall, segments []string) {
	switch n := len(segments); {
	case n == 3:
		call.route, call.category = LyricRoutePage, segments[2]
	case n == 5 && segments[3] == "organization":
		call.route, call.category, call.page.Organization = LyricRoutePage, segments[2], segments[4]
	case n == 5 && segments[3] == "id":
		call.route, call.category, call.id = LyricRouteRecord, segments[2], segments[4]
	}
}

var lyricAlias = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// parameters checks the parameters like Lyric, with its messages.
func (s *LyricServer) parameters(call *lyricCall, query url.Values) {
	fault := func(name, message string) { call.faults = append(call.faults, name+" is "+message) }
	if call.route != LyricRouteCategory {
		view := query.Get("view")
		call.page.View = strings.TrimSpace(strings.ToLower(view))
		call.compound = call.page.View == "compound"
		if query.Has("view") && !call.compound && call.page.View != "flat" {
			fault("view", fmt.Sprintf("Invalid enum value. Expected 'flat' | 'compound', received '%s'", call.page.View))
		}
	}
	if call.route == LyricRoutePage || call.route == LyricRouteQuery {
		if call.page.Entity = query.Get("entityName"); call.page.Entity != "" && call.compound {
			fault("entityName", "is incompatible with `compound` view")
		}
		number := func(name string, otherwise int) int {
			if !query.Has(name) {
				return otherwise
			}
			n, ok := leadingInt(query.Get(name))
			switch {
			case !ok:
				fault(name, "Expected number, received nan")
			case n < 1:
				fault(name, "Invalid input")
			}
			return min(max(n, 0), math.MaxInt32)
		}
		call.page.Page = number("page", lyricPage)
		call.page.PageSize = number("pageSize", lyricPageSize)
		if s.cfg.MaxPageSize > 0 {
			call.page.PageSize = min(call.page.PageSize, s.cfg.MaxPageSize)
		}
	}
	if len(call.faults) > 0 {
		return // like Lyric, which checks the query first
	}
	if n, ok := leadingInt(call.category); (!ok || n < 1) && !lyricAlias.MatchString(strings.TrimSpace(call.category)) {
		fault("categoryId", "invalid category ID")
	}
	for _, p := range []struct{ name, value string }{{"organization", call.page.Organization}, {"systemId", call.id}} {
		if p.value != "" && strings.TrimSpace(p.value) == "" {
			fault(p.name, "String must contain at least 1 character(s)")
		}
	}
}

// leadingInt parses the number at the start of text, like JavaScript's parseInt.
func leadingInt(text string) (n int, ok bool) {
	text = strings.TrimSpace(text)
	end := 0
	for end < len(text) && (text[end] >= '0' && text[end] <= '9' || end == 0 && (text[end] == '-' || text[end] == '+')) {
		end++
	}
	n, err := strconv.Atoi(text[:end])
	return n, err == nil
}

// isCategory reports whether name is the server's category: its id, a text that starts with it, or its alias.
func (s *LyricServer) isCategory(name string) bool {
	if n, ok := leadingInt(name); ok && n == s.cfg.CategoryID {
		return true
	}
	return s.cfg.Alias != "" && name == s.cfg.Alias
}

func (s *LyricServer) dispatch(w *faultWriter, r *http.Request, call lyricCall) {
	switch {
	case call.route == LyricRouteOther:
		s.noRoute(w, r)
		return
	case call.route == LyricRouteAlive:
		s.sendJSON(w, http.StatusOK, map[string]any{"uptime": 1.5, "message": "OK", "timestamp": time.Now().UnixMilli()})
		return
	case len(call.faults) > 0:
		s.sendError(w, http.StatusBadRequest, "Bad Request", strings.Join(call.faults, " | "))
		return
	}
	if call.route == LyricRoutePage && s.cfg.BeforePage != nil {
		s.cfg.BeforePage(s, s.Requests(LyricRoutePage)-1, call.page)
	}
	switch {
	case !s.isCategory(call.category):
		s.notFound(w, fmt.Sprintf("Category '%s' not found", call.category))
	case call.route == LyricRouteCategory:
		s.serveCategory(w)
	case call.route == LyricRoutePage:
		s.servePage(w, call, nil)
	case call.route == LyricRouteDictionary:
		s.send(w, lyricJSON, s.cfg.Dictionary)
	case call.route == LyricRouteQuery:
		values, ok := queriedValues(r.Body)
		if !ok {
			s.sendError(w, http.StatusBadRequest, "Bad Request", " is invalid SQON format")
			return
		}
		s.servePage(w, call, values)
	default:
		s.serveRecord(w, call)
	}
}

// noRoute sends the response of Lyric's web framework.
func (s *LyricServer) noRoute(w *faultWriter, r *http.Request) {
	w.status = http.StatusNotFound
	s.send(w, "text/html; charset=utf-8", fmt.Appendf(nil, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n"+
		"<meta charset=\"utf-8\">\n<title>Error</title>\n</head>\n<body>\n<pre>Cannot %s %s</pre>\n</body>\n</html>\n",
		r.Method, html.EscapeString(r.URL.EscapedPath())))
}

func (s *LyricServer) serveCategory(w *faultWriter) {
	type dictionary struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	s.sendJSON(w, http.StatusOK, struct {
		Alias         string     `json:"alias,omitempty"`
		CreatedAt     string     `json:"createdAt"`
		CreatedBy     string     `json:"createdBy"`
		Dictionary    dictionary `json:"dictionary"`
		ID            int        `json:"id"`
		Name          string     `json:"name"`
		Organizations []string   `json:"organizations"`
		UpdatedAt     string     `json:"updatedAt"`
		UpdatedBy     string     `json:"updatedBy"`
	}{
		s.cfg.Alias, "2024-05-01T12:00:00.000Z", "",
		dictionary{"clinical", "1.2"},
		s.cfg.CategoryID, "clinical",
		s.Organizations(), "", "",
	})
}

// queriedValues returns the values of the fields that a SQON requires: an "in" of one value each, joined by "and". ok is false for another
// body.
func queriedValues(body io.Reader) (values map[string]string, ok bool) {
	data, err := io.ReadAll(body)
	if err != nil || !gjson.ValidBytes(data) || gjson.GetBytes(data, "op").Str != "and" {
		return nil, false
	}
	values, ok = map[string]string{}, true
	for _, f := range gjson.GetBytes(data, "content").Array() {
		value := f.Get("content.value").Array()
		if f.Get("op").Str != "in" || len(value) != 1 || value[0].Type != gjson.String {
			return nil, false
		}
		values[f.Get("content.fieldName").Str] = value[0].Str
	}
	return values, ok && len(values) > 0
}

// servePage serves a page, of the records with values if that is not nil.
func (s *LyricServer) servePage(w *faultWriter, call lyricCall, values map[string]string) {
	organization, nothing := &call.page.Organization, "No Submitted data found"
	if *organization == "" {
		organization, nothing = nil, "No Submitted Data found"
	}
	entity := call.page.Entity
	if call.compound {
		entity = s.cfg.CentralEntity
	}
	rows, total := s.page(organization, entity, values, (call.page.Page-1)*call.page.PageSize, call.page.PageSize)
	if len(rows) == 0 {
		s.notFound(w, nothing)
		return
	}
	if s.cfg.BeforeTotal != nil {
		s.cfg.BeforeTotal(s, call.page)
		_, total = s.page(organization, entity, values, 0, 0)
	}
	pagination := fmt.Sprintf(`"pagination":{"currentPage":%d,"pageSize":%d,"totalPages":%d,"totalRecords":%d}`,
		call.page.Page, call.page.PageSize, (total+call.page.PageSize-1)/call.page.PageSize, total)
	buffer, _ := s.buffers.Get().(*[]byte)
	if buffer == nil {
		buffer = new([]byte)
	}
	defer s.buffers.Put(buffer)
	out := append((*buffer)[:0], '{')
	if !s.cfg.PaginationLast {
		out = append(append(out, pagination...), ',')
	}
	out = append(out, `"records":[`...)
	for i, row := range rows {
		if i > 0 {
			out = append(out, ',')
		}
		if call.compound {
			out = append(out, row.Body...)
		} else {
			out = append(out, row.Flat()...)
		}
	}
	out = append(out, ']')
	if s.cfg.PaginationLast {
		out = append(append(out, ','), pagination...)
	}
	*buffer = append(out, '}')
	s.send(w, lyricJSON, *buffer)
}

func (s *LyricServer) serveRecord(w *faultWriter, call lyricCall) {
	record, ok := s.Record(call.id)
	switch {
	case !ok:
		s.notFound(w, fmt.Sprintf("No Submitted data found with systemId '%s'", call.id))
	case call.compound && (s.cfg.CentralEntity == "" || s.cfg.CentralEntity == record.EntityName):
		s.send(w, lyricJSON, record.Body)
	default:
		s.send(w, lyricJSON, record.Flat())
	}
}
