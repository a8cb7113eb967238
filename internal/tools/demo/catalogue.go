package demo

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tutti/internal/base/retry"
)

// The catalogues of the demo. The index of the last one does not exist: it shows a failed catalogue.
const (
	catalogueAnalyses = "analyses"
	catalogueClinical = "clinical"
	catalogueBroken   = "expression"
	catalogueFolder   = "catalogues"
)

// mappingWait bounds the wait until a new field appears in its catalogue.
const mappingWait = 30 * time.Second

// catalogueFiles is a configuration directory like those of existing portals, with one directory for each catalogue.
//
//go:embed catalogues
var catalogueFiles embed.FS

// writeCatalogues writes the catalogues' configuration into the data directory and returns its path.
func writeCatalogues(dataDir string) (string, error) {
	dir := filepath.Join(dataDir, catalogueFolder)
	err := fs.WalkDir(catalogueFiles, catalogueFolder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(dataDir, filepath.FromSlash(path))
		if entry.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		content, err := catalogueFiles.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, content, 0o600)
	})
	if err != nil {
		return "", fmt.Errorf("writing the catalogues: %w", err)
	}
	return dir, nil
}

// introspect shows the introspection of the catalogues. A changed mapping is read again within a second.
func (d *demo) introspect(ctx context.Context) error {
	d.say("\n7. Each index is described by a catalogue, configured in %s: GET /introspection", filepath.Join(d.cfg.DataDir, catalogueFolder))
	for _, described := range []struct{ catalogue, field, grown string }{
		{catalogueAnalyses, `fields.files\.fileSize`, `fields.experiment\.experimentalStrategy`},
		{catalogueClinical, `fields.primary_diagnoses\.age_at_diagnosis`, `fields.primary_diagnoses\.age_at_diagnosis`},
	} {
		detail, err := d.client.get(ctx, "/introspection/"+described.catalogue)
		waiting := time.Now()
		for ; err == nil && !detail.Get(described.grown).Exists(); detail, err = d.client.get(ctx, "/introspection/"+described.catalogue) {
			if time.Since(waiting) > mappingWait {
				return fmt.Errorf("the catalogue %s does not return its fields: %s", described.catalogue, detail.Get("error.message"))
			}
			if err := retry.Sleep(ctx, 20*time.Millisecond); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		field := detail.Get(described.field)
		text := fmt.Sprintf("%s (%s)", field.Get("displayName"), field.Get("type"))
		if unit := field.Get("unit"); unit.Exists() {
			text = fmt.Sprintf("%s (%s, %s)", field.Get("displayName"), field.Get("type"), unit)
		}
		d.say("   %-10s %3d fields, such as %s; operators %s", described.catalogue, len(detail.Get("fields").Map()), text,
			detail.Get("operators."+field.Get("type").String()).Raw)
	}
	summary, err := d.client.get(ctx, "/introspection")
	if err != nil {
		return err
	}
	broken := summary.Get("catalogs." + catalogueBroken)
	d.say("   %-10s is invalid on purpose → %s, %s: %s", catalogueBroken, broken.Get("status"), broken.Get("error.code"), broken.Get("error.message"))
	d.say("   The status of all catalogues is %s; GET /ready returns it too.", summary.Get("status"))
	return nil
}
