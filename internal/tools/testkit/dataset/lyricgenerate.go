package dataset

import (
	"hash/fnv"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"
)

// GenerateRecords returns n valid records of an organization, each a donor of about 1 to 2 KB in the compound view: with specimens that
// contain samples, diagnoses that contain treatments, and follow-ups. The same seed, organization and n return the same bytes; ids are
// distinct across organizations and seeds.
func GenerateRecords(seed uint64, organization string, n int) []LyricRecord {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte("lyric " + organization)) // never fails
	g := &donorGenerator{generator{
		rng: rand.New(rand.NewPCG(seed, sum.Sum64())), seed: sum.Sum64(), study: organization, site: siteOf(organization),
	}}
	records := make([]LyricRecord, n)
	for i := range records {
		records[i] = g.record(i)
	}
	return records
}

// donorGenerator appends records in Lyric's format: names with underscores, related entities in the plural, and numbers, booleans, lists
// of words and dates like the fields of a dictionary.
type donorGenerator struct{ generator }

func (g *donorGenerator) record(i int) LyricRecord {
	id := g.systemID()
	donor := g.study + "-d" + strconv.Itoa(i)
	g.buf = g.buf[:0]
	g.raw(`{"data":{"submitter_donor_id":`).text(donor)
	g.raw(`,"gender":`).text(pick(g.rng, []string{"Woman", "Man", "Another gender", "Not reported"}))
	g.raw(`,"sex_at_birth":`).text(pick(g.rng, []string{"Female", "Male"}))
	g.raw(`,"primary_site":[`).text(g.site)
	if g.rng.IntN(6) == 0 {
		g.raw(`,`).text("Lymph nodes")
	}
	g.raw(`],"vital_status":`).text(pick(g.rng, []string{"Alive", "Deceased", "Unknown"}))
	g.raw(`,"is_deceased":`).bool(g.rng.IntN(3) == 0)
	g.raw(`,"height_cm":`).decimal(15000 + g.rng.IntN(5000)).raw(`,"clinic":`)
	g.text(pick(g.rng, []string{"Hôpital Saint-Étienne", "国立病院機構", "Toronto General", "Clinic “North” β"}))
	g.raw(`,"lost_to_followup_reason":`).optional(g.rng.IntN(10) == 0, "Moved away")
	g.diagnoses(donor)
	g.specimens(donor)
	g.followUps(donor, g.rng.IntN(3))
	g.raw(`},"entityName":"donor","isValid":true,"organization":`).text(g.study)
	g.raw(`,"systemId":"`).raw(id).raw(`"}`)
	return LyricRecord{
		SystemID: id, Organization: g.study, EntityName: "donor", IsValid: true, Body: append([]byte(nil), g.buf...),
	}
}

func (g *donorGenerator) diagnoses(donor string) {
	g.raw(`,"primary_diagnoses":[`)
	for d := range 1 + g.rng.IntN(5)/4 {
		if d > 0 {
			g.raw(`,`)
		}
		id := donor + "-pd" + strconv.Itoa(d)
		g.raw(`{"submitter_donor_id":`).text(donor).raw(`,"submitter_primary_diagnosis_id":`).text(id)
		g.raw(`,"date_of_diagnosis":`).day().raw(`,"cancer_type_code":`)
		g.text(pick(g.rng, []string{"C25.0", "C22.0", "C50.9", "C18.7", "C34.1", "C56"}))
		g.raw(`,"clinical_stage_group":`).text(pick(g.rng, []string{"Stage I", "Stage IIA", "Stage IIIB", "Stage IV"}))
		g.raw(`,"age_at_diagnosis":`).number(18 + g.rng.IntN(72))
		g.treatments(id, g.rng.IntN(3))
		g.raw(`}`)
	}
	g.raw(`]`)
}

// treatments appends the treatments of a diagnosis. Lyric omits a related entity without records.
func (g *donorGenerator) treatments(diagnosis string, n int) {
	if n == 0 {
		return
	}
	g.raw(`,"treatments":[`)
	for t := range n {
		if t > 0 {
			g.raw(`,`)
		}
		g.raw(`{"submitter_primary_diagnosis_id":`).text(diagnosis)
		g.raw(`,"submitter_treatment_id":"`).raw(diagnosis).raw(`-t`).number(t).raw(`","treatment_type":[`)
		g.text(pick(g.rng, []string{"Chemotherapy", "Radiation therapy", "Surgery", "Immunotherapy"}))
		g.raw(`],"treatment_start_date":`).day().raw(`,"treatment_intent":`)
		g.text(pick(g.rng, []string{"Curative", "Palliative"})).raw(`,"number_of_cycles":`).number(1 + g.rng.IntN(8)).raw(`}`)
	}
	g.raw(`]`)
}

func (g *donorGenerator) specimens(donor string) {
	g.raw(`,"specimens":[`)
	for s := range 1 + g.rng.IntN(2) {
		if s > 0 {
			g.raw(`,`)
		}
		id := donor + "-sp" + strconv.Itoa(s)
		designation := "Tumour"
		if s > 0 {
			designation = "Normal"
		}
		g.raw(`{"submitter_donor_id":`).text(donor).raw(`,"submitter_specimen_id":`).text(id)
		g.raw(`,"tumour_normal_designation":`).text(designation).raw(`,"specimen_collection_date":`).day()
		g.raw(`,"specimen_tissue_source":`).text(pick(g.rng, []string{"Solid tissue", "Blood derived", "Saliva", "Bone marrow"}))
		g.raw(`,"percent_tumour_cells":`).decimal(g.rng.IntN(100)).raw(`,"samples":[{"submitter_specimen_id":`).text(id)
		g.raw(`,"submitter_sample_id":"`).raw(id).raw(`-s`).number(0).raw(`","sample_type":`)
		g.text(pick(g.rng, []string{"Total DNA", "Amplified DNA", "Total RNA", "ctDNA"})).raw(`}]}`)
	}
	g.raw(`]`)
}

func (g *donorGenerator) followUps(donor string, n int) {
	if n == 0 {
		return
	}
	g.raw(`,"follow_ups":[`)
	for f := range n {
		if f > 0 {
			g.raw(`,`)
		}
		g.raw(`{"submitter_donor_id":`).text(donor).raw(`,"submitter_follow_up_id":"`).raw(donor).raw(`-fu`).number(f)
		g.raw(`","date_of_followup":`).day().raw(`,"disease_status_at_followup":`)
		g.text(pick(g.rng, []string{"Complete remission", "Stable", "Progression", "Relapse"})).raw(`}`)
	}
	g.raw(`]`)
}

// day appends a date without a time.
func (g *generator) day() *generator {
	first := time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC)
	g.buf = append(g.buf, '"')
	g.buf = first.AddDate(0, 0, g.rng.IntN(3000)).AppendFormat(g.buf, time.DateOnly)
	g.buf = append(g.buf, '"')
	return g
}

// decimal appends hundredths in JavaScript's number format: 171.5, and 170 without a point.
func (g *generator) decimal(hundredths int) *generator {
	g.buf = strconv.AppendFloat(g.buf, float64(hundredths)/100, 'f', -1, 64)
	return g
}

// bool appends true or false.
func (g *generator) bool(b bool) *generator {
	g.buf = strconv.AppendBool(g.buf, b)
	return g
}

// optional appends a JSON string, or null for a missing value.
func (g *generator) optional(given bool, s string) *generator {
	if !given {
		return g.raw(`null`)
	}
	return g.text(s)
}

// systemID returns an id like Lyric's own generator: 21 digits and capital letters.
func (g *donorGenerator) systemID() string {
	const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	var id strings.Builder
	for range 21 {
		id.WriteByte(alphabet[g.rng.IntN(len(alphabet))])
	}
	return id.String()
}
