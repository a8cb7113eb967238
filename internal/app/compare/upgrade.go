package compare

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"tutti/internal/app/check"
	"tutti/internal/app/settings"
	"tutti/internal/config"
	"tutti/internal/core"
	"tutti/internal/index"
	"tutti/internal/index/embedded"
	"tutti/internal/index/mapping"
	"tutti/internal/index/mappingplan"
	"tutti/internal/index/merged"
	"tutti/internal/search/catalogue/definition"
)

// UpgradePlan says what changes when this release replaces the one that runs, or that has written the data.
type UpgradePlan struct {
	// Storage is what the next start changes in what is stored.
	Storage []StoredPart `json:"storage"`
	// Changes are those of what is served: by the start, then by a rebuild of each index.
	Changes []UpgradeChange `json:"changes"`
	// Unread says what could not be compared, and why.
	Unread []string `json:"unread"`
	// Difference is set if the start or a rebuild changes something, or if that is not known.
	Difference bool `json:"difference"`
}

// UpgradeChange is a change of what is served, or what might be expected to change and does not.
type UpgradeChange struct {
	// Subject is a catalogue or the index of a repository, such as "catalogue donors".
	Subject string `json:"subject"`
	// When is ByStart, ByRebuild or Stays.
	When string `json:"when"`
	// Change is in words.
	Change string `json:"change"`
}

// Values of UpgradeChange.When.
const (
	ByStart   = "at the start"
	ByRebuild = "by a rebuild"
	Stays     = "stays"
)

// Upgrade returns the plan of an upgrade to this release, whose version it is. It reads the search engine of the configuration, or the file of
// an embedded index that no tutti has open; what it cannot read so, served has, which may be of an earlier release. served is nil for no
// server, unasked why. Nothing is changed.
func Upgrade(ctx context.Context, cfg config.Config, version string, served Served, unasked error) UpgradePlan {
	u := &upgrade{ctx: ctx, cfg: cfg, version: version, served: served}
	u.plan = UpgradePlan{Storage: storedParts(ctx, cfg), Changes: []UpgradeChange{}, Unread: []string{}}
	if unasked != nil {
		u.unread("what is served now", unasked)
	}
	set, unset := settings.Definitions(cfg)
	if unset != nil {
		u.unread("the catalogues", unset)
	}
	u.kept(set)
	x, done, err := u.comparer()
	if err != nil {
		u.unread("the index", err)
	} else {
		defer done()
		if served != nil && unset == nil {
			u.catalogues(set, x)
		}
		for _, rc := range cfg.Repositories {
			u.index(rc, x)
		}
	}
	for _, part := range u.plan.Storage {
		if part.Unread != "" {
			u.plan.Unread = append(u.plan.Unread, part.Part+": "+part.Unread)
		}
		u.plan.Difference = u.plan.Difference || part.Change != ""
	}
	u.plan.Difference = u.plan.Difference || len(u.plan.Unread) > 0
	return u.plan
}

// upgrade collects an UpgradePlan.
type upgrade struct {
	ctx     context.Context //nolint:containedctx // the caller's, for the length of one call
	cfg     config.Config
	version string
	served  Served
	plan    UpgradePlan
}

func (u *upgrade) add(subject, when, format string, values ...any) {
	u.plan.Changes = append(u.plan.Changes, UpgradeChange{subject, when, fmt.Sprintf(format, values...)})
	u.plan.Difference = u.plan.Difference || when != Stays
}

func (u *upgrade) unread(what string, err error) {
	u.plan.Unread = append(u.plan.Unread, what+": "+core.DisplayOf(err))
}

// comparer returns what compares the indices with the configuration, until done is called.
func (u *upgrade) comparer() (x Comparer, done func(), err error) {
	if u.cfg.Index.URL != "" {
		engine, err := Engine(u.cfg)
		return engine, func() { _ = engine.Close() }, err // nothing was written
	}
	found, err := settings.InspectIndex(u.cfg)
	switch {
	case err == nil:
		return merged.New(stored{Comparer: found}, u.cfg.CoreRepositories()), func() {}, nil
	case core.CodeOf(err) == core.CodeConflict && u.served != nil:
		return servedIndex{u.served}, func() {}, nil
	default:
		return nil, nil, err
	}
}

// stored is an engine that only compares.
type stored struct {
	index.Index
	Comparer
}

// Compare implements index.Index.
func (s stored) Compare(ctx context.Context, spec index.Spec) (index.Comparison, error) {
	return s.Comparer.Compare(ctx, spec)
}

// Mapping implements index.Index.
func (s stored) Mapping(ctx context.Context, alias string) (json.RawMessage, error) {
	return s.Comparer.Mapping(ctx, alias)
}

// servedIndex is the embedded index of a server.
type servedIndex struct{ Served }

// Compare compares the mapping that the server returns; the server's release may have other rules.
func (s servedIndex) Compare(ctx context.Context, spec index.Spec) (index.Comparison, error) {
	p, err := s.Plan(ctx, spec.Alias)
	switch {
	case err != nil:
		return index.Comparison{}, err
	case p == nil || p.Mapping == nil:
		return embedded.Compare(spec, "", nil), nil
	}
	live, _, err := mapping.ParseForeign(p.Mapping)
	if err != nil {
		return index.Comparison{}, core.WrapError(core.CodeUnsupported, "the mapping of "+spec.Alias+" cannot be parsed", err)
	}
	c := embedded.Compare(spec, spec.Alias, live)
	for _, l := range p.Limits {
		c.Limits = append(c.Limits, index.SettingDifference{Setting: l.Setting, Wanted: l.Wanted, Live: l.Live})
	}
	return c, nil
}

// Mapping returns the mapping that the server returns.
func (s servedIndex) Mapping(ctx context.Context, alias string) (json.RawMessage, error) {
	raw, err := servedMapping(ctx, s.Served, alias)
	if err == nil && raw == nil {
		err = core.WrapError(core.CodeIndexBlocked, "the index is missing", core.ErrIndexMissing)
	}
	return raw, err
}

// kept adds the catalogues that have names of routes.
func (u *upgrade) kept(set definition.Set) {
	for _, d := range set.Definitions {
		if text := check.KeptPaths(d); text != "" {
			u.add("catalogue "+d.ID, Stays, "%s", text)
		}
	}
}

// catalogues adds what changes of the catalogues that are served.
func (u *upgrade) catalogues(set definition.Set, x Comparer) {
	p, err := planSet(u.ctx, "", set, x, u.served)
	if err != nil {
		u.unread("the catalogues", err)
		return
	}
	for _, c := range p.Catalogues {
		subject := "catalogue " + c.ID
		if c.Error != "" && len(c.Reload) > 0 {
			u.add(subject, ByStart, "it cannot be used: %s", c.Error)
			continue
		}
		for _, text := range c.Reload {
			u.add(subject, ByStart, "%s", text)
		}
	}
}

// index adds what changes of the index of a repository.
func (u *upgrade) index(rc config.Repository, x Comparer) {
	subject := "index of " + rc.Code
	types, err := check.Declared(u.ctx, u.cfg, rc, u.version)
	if err != nil {
		u.unread("what "+rc.Code+" declares about the types of fields", err)
	}
	p, err := Mapping(u.ctx, u.cfg, rc, types, x)
	if err != nil {
		u.unread(subject, err)
		return
	}
	if p.Refused != "" {
		u.add(subject, ByStart, "its mapping is refused, and stays as it is: %s", p.Refused)
	}
	for _, f := range p.Fields {
		switch f.Change {
		case mappingplan.Add, mappingplan.Update:
			u.add(subject, ByStart, "the field %s becomes %s instead of %s", f.Field, cmp.Or(f.Wanted, "none"), cmp.Or(f.Live, "none"))
		case mappingplan.Rebuild:
			u.add(subject, ByRebuild, "the field %s becomes %s instead of %s", f.Field, cmp.Or(f.Wanted, "none"), cmp.Or(f.Live, "none"))
		default:
		}
	}
	for _, f := range p.Retyped {
		u.add(subject, ByRebuild, "the field %s becomes %s instead of %s", f.Field, f.Wanted, f.Live)
	}
	for _, s := range append(p.Settings, p.Limits...) {
		u.add(subject, ByRebuild, "%s becomes %s instead of %s", s.Setting, s.Wanted, cmp.Or(s.Live, "none"))
	}
	if s, is := x.(servedIndex); is {
		if told, err := s.Plan(u.ctx, rc.IndexName); err == nil && told != nil && told.Mapping != nil && told.Limits == nil {
			u.plan.Unread = append(u.plan.Unread, subject+": its limits, which the running release does not tell; stop it and repeat the command")
		}
	}
}
