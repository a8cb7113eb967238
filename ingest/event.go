package ingest

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"tutti/internal/core"
)

// EventFormat tells the bodies of an event apart (CONTRACT section 1, Notifications in).
type EventFormat string

// Formats of an Event, each named by the member that only it has.
const (
	// FormatMaestro is a request for one record, organization or repository: repositoryCode.
	FormatMaestro EventFormat = "maestro"
	// FormatLyric is a change of one record of a tabular repository: systemId.
	FormatLyric EventFormat = "lyric"
	// FormatSong is a change of one analysis: analysisId without repositoryCode.
	FormatSong EventFormat = "song"
)

// Event is one notification as understood. Of what it says of a record's state nothing is kept: the record as fetched
// decides, so that a late or repeated event cannot remove a published record.
type Event struct {
	Format EventFormat
	// Repository is the repositoryCode of FormatMaestro, or the songServerId of FormatSong, empty when there is none.
	Repository string
	// Categories are the categoryId and the categoryAlias of FormatLyric, as far as there are any.
	Categories []string
	// Entity is the entityName of FormatLyric, empty when there is none.
	Entity string
	// Organization and RecordID are empty where an event of FormatMaestro names a wider scope.
	Organization string
	RecordID     string
	// Remove is true for removeAnalysis of FormatMaestro alone.
	Remove bool
}

// Scope tells how much the event asks for.
func (e Event) Scope() core.Scope {
	switch {
	case e.RecordID != "":
		return core.ScopeRecord
	case e.Organization != "":
		return core.ScopeOrganization
	default:
		return core.ScopeRepository
	}
}

// FaultKind tells the ways apart in which an event comes to nothing.
type FaultKind int

// Kinds of Fault.
const (
	// FaultNotUnderstood: the event is none, or a member of it is wrong.
	FaultNotUnderstood FaultKind = iota
	// FaultOtherServer: the event is of a server that is not the repository's.
	FaultOtherServer
	// FaultUnknownRepository: the event asks for a repository that is not configured.
	FaultUnknownRepository
)

// Fault says why an event comes to nothing.
type Fault struct {
	Kind FaultKind
	// Member names the member at fault, empty for the event as a whole.
	Member string
	// Message names the fault; safe to display.
	Message string
	// Server is the other server's or unknown repository's name, of FaultOtherServer and FaultUnknownRepository.
	Server string
	// Organization and RecordID are those of the event as far as they could be read.
	Organization string
	RecordID     string
}

// maxDepth is how deep an event may be nested. The validation of JSON and the reading of it go down one call for each
// level, so that a body of brackets alone would end the process.
const maxDepth = 500

// The members of an event that are read. All others are tolerated.
const (
	memberRepository = "repositoryCode"
	memberStudy      = "studyId"
	memberAnalysis   = "analysisId"
	memberRemove     = "removeAnalysis"
	memberServer     = "songServerId"
	memberSystem     = "systemId"
	memberOrg        = "organization"
	memberCategory   = "categoryId"
	memberAlias      = "categoryAlias"
	memberEntity     = "entityName"
)

// ParseEvent reads the bytes of one event. Of an Event and a Fault exactly one is given. A member that is null counts as
// absent, since producers write absent members so; a member of the known ones that stands twice is a fault, since readers
// disagree on which one counts.
func ParseEvent(data []byte) (Event, *Fault) {
	if fault := checkJSON(data, "the event"); fault != nil {
		return Event{}, fault
	}
	root := gjson.ParseBytes(data)
	if !root.IsObject() {
		return Event{}, &Fault{Message: "the event is not a JSON object"}
	}
	return readEvent(root)
}

// checkJSON reports whether data is one JSON value that can be read. what names it in the message.
func checkJSON(data []byte, what string) *Fault {
	switch {
	case len(data) == 0:
		return &Fault{Message: what + " is empty"}
	case core.TooDeep(data, maxDepth):
		return &Fault{Message: fmt.Sprintf("%s is nested deeper than %d levels", what, maxDepth)}
	case !gjson.ValidBytes(data):
		return &Fault{Message: what + " is not valid JSON"}
	default:
		return nil
	}
}

// members holds the known members of an event that are there and not null.
type members map[string]gjson.Result

// readEvent reads an event that is a valid JSON object.
func readEvent(object gjson.Result) (Event, *Fault) {
	m := make(members, 4)
	twice := ""
	object.ForEach(func(key, value gjson.Result) bool {
		switch name := key.String(); name {
		case memberRepository, memberStudy, memberAnalysis, memberRemove, memberServer, memberSystem, memberOrg,
			memberCategory, memberAlias, memberEntity:
			if _, seen := m[name]; seen {
				twice = name
			}
			m[name] = value
		}
		return true
	})
	for name, value := range m {
		if value.Type == gjson.Null {
			delete(m, name)
		}
	}
	event, fault := m.event(twice)
	if fault != nil {
		fault.Organization, fault.RecordID = m.readable()
	}
	return event, fault
}

func (m members) event(twice string) (Event, *Fault) {
	if twice != "" {
		return Event{}, faultOf(twice, "is given twice")
	}
	switch {
	case m.has(memberRepository):
		return m.maestro()
	case m.has(memberSystem):
		return m.lyric()
	case m.has(memberAnalysis):
		return m.song()
	default:
		return Event{}, &Fault{Message: fmt.Sprintf("the event has none of the members %s, %s and %s",
			memberRepository, memberSystem, memberAnalysis)}
	}
}

func (m members) maestro() (Event, *Fault) {
	e := Event{Format: FormatMaestro}
	var fault *Fault
	if e.Repository, fault = m.key(memberRepository); fault != nil {
		return Event{}, fault
	}
	if m.has(memberStudy) {
		if e.Organization, fault = m.key(memberStudy); fault != nil {
			return Event{}, fault
		}
	}
	if m.has(memberAnalysis) {
		if e.RecordID, fault = m.key(memberAnalysis); fault != nil {
			return Event{}, fault
		}
	}
	if m.has(memberRemove) {
		if e.Remove = m[memberRemove].Type == gjson.True; !e.Remove && m[memberRemove].Type != gjson.False {
			return Event{}, faultOf(memberRemove, "must be true or false")
		}
	}
	switch {
	case e.RecordID != "" && e.Organization == "":
		return Event{}, faultOf(memberStudy, "is missing: "+memberAnalysis+" needs it")
	case e.Remove && e.RecordID == "":
		return Event{}, faultOf(memberAnalysis, "is missing: "+memberRemove+" exists for one record only")
	case e.Scope() == core.ScopeOrganization:
		if fault = runnable(memberStudy, e.Organization); fault != nil {
			return Event{}, fault
		}
	}
	return e, nil
}

// runnable checks an organization that a run may have to name: a run is displayed and requested by its organization, so
// the rules of a path apply to it.
func runnable(member, organization string) *Fault {
	if err := core.ValidID(member, organization); err != nil {
		return &Fault{Member: member, Message: core.MessageOf(err)}
	}
	return nil
}

func (m members) lyric() (Event, *Fault) {
	e := Event{Format: FormatLyric}
	var fault *Fault
	if e.RecordID, fault = m.key(memberSystem); fault != nil {
		return Event{}, fault
	}
	if e.Organization, fault = m.key(memberOrg); fault != nil {
		return Event{}, fault
	}
	// A change of an entity that is not indexed by itself runs the organization.
	if fault = runnable(memberOrg, e.Organization); fault != nil {
		return Event{}, fault
	}
	if category, ok := m[memberCategory]; ok {
		switch category.Type {
		case gjson.Number:
			e.Categories = append(e.Categories, strings.Clone(category.Raw))
		case gjson.String:
			if e.Categories, fault = m.appendKey(e.Categories, memberCategory); fault != nil {
				return Event{}, fault
			}
		case gjson.Null, gjson.False, gjson.True, gjson.JSON:
			return Event{}, faultOf(memberCategory, "must be a number or a string")
		}
	}
	if m.has(memberAlias) {
		if e.Categories, fault = m.appendKey(e.Categories, memberAlias); fault != nil {
			return Event{}, fault
		}
	}
	if entity := m[memberEntity]; entity.Type == gjson.String {
		e.Entity = strings.Clone(entity.String())
	}
	return e, nil
}

func (m members) song() (Event, *Fault) {
	e := Event{Format: FormatSong}
	var fault *Fault
	if e.RecordID, fault = m.key(memberAnalysis); fault != nil {
		return Event{}, fault
	}
	if e.Organization, fault = m.key(memberStudy); fault != nil {
		return Event{}, fault
	}
	if m.has(memberServer) {
		if e.Repository, fault = m.key(memberServer); fault != nil {
			return Event{}, fault
		}
	}
	return e, nil
}

func (m members) has(name string) bool {
	_, ok := m[name]
	return ok
}

// key returns a member that must be there and be part of a Request.
func (m members) key(name string) (string, *Fault) {
	value, ok := m[name]
	if !ok {
		return "", faultOf(name, "is missing")
	}
	if value.Type != gjson.String {
		return "", faultOf(name, "must be a string")
	}
	if err := core.ValidKey(name, value.Str); err != nil {
		return "", &Fault{Member: name, Message: core.MessageOf(err)}
	}
	// The value may share the bytes of the whole event, which would live as long.
	return strings.Clone(value.Str), nil
}

func (m members) appendKey(keys []string, name string) ([]string, *Fault) {
	key, fault := m.key(name)
	if fault != nil {
		return nil, fault
	}
	return append(keys, key), nil
}

// readable returns what can be read of the organization and the record of an event that is at fault.
func (m members) readable() (organization, recordID string) {
	first := func(names ...string) string {
		for _, name := range names {
			if v := m[name]; v.Type == gjson.String && v.Str != "" {
				return strings.ToValidUTF8(v.Str, "\uFFFD")
			}
		}
		return ""
	}
	if m.has(memberSystem) && !m.has(memberRepository) {
		return first(memberOrg), first(memberSystem)
	}
	return first(memberStudy), first(memberAnalysis)
}

// faultOf makes a Fault of one member.
func faultOf(member, fault string) *Fault {
	return &Fault{Member: member, Message: member + " " + fault}
}
