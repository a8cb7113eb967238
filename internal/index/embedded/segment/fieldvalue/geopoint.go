package fieldvalue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tutti/internal/index/document"
	"tutti/internal/index/mapping"
)

// checkGeoPoint is Check for a geo_point.
func checkGeoPoint(f *mapping.Field, kind document.Kind, raw []byte) error {
	text := raw
	if kind == document.KindString {
		text = slices.Concat([]byte{'"'}, raw, []byte{'"'})
	}
	var value any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		return errors.New("it is not valid JSON")
	}
	return geoPointReader{flat: string(f.Params["ignore_z_value"]) == "false"}.value(value)
}

// geoPointReader checks the values of a geo_point as Elasticsearch 8 does.
type geoPointReader struct {
	// flat is set when points must have two dimensions.
	flat bool
}

var (
	errNoPoint    = errors.New("a point is an object, an array of numbers or a string")
	errDimensions = errors.New("a point has two or three numbers")
)

// value checks a value that is not an element of an array.
func (r geoPointReader) value(v any) error {
	array, is := v.([]any)
	if !is {
		return r.element(v)
	}
	if len(array) > 0 {
		if _, is := array[0].(json.Number); is {
			return r.coordinates(array)
		}
	}
	for _, element := range array {
		if err := r.element(element); err != nil {
			return err
		}
	}
	return nil
}

// coordinates checks an array that begins with the numbers of a point. After three numbers there may be other points.
func (r geoPointReader) coordinates(array []any) error {
	if len(array) < 2 {
		return errDimensions
	}
	lon, _ := doubleOf(array[0])
	lat, is := doubleOf(array[1])
	if !is {
		return errNoPoint
	}
	if err := within(lat, lon); err != nil || len(array) == 2 {
		return err
	}
	if _, is := array[2].(json.Number); !is || r.flat {
		return errDimensions
	}
	for _, element := range array[3:] {
		if err := r.element(element); err != nil {
			return err
		}
	}
	return nil
}

// element checks a value, or an element of an array of them.
func (r geoPointReader) element(v any) error {
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		return r.text(v)
	case map[string]any:
		return r.object(v)
	case []any:
		if slices.ContainsFunc(v, func(item any) bool { _, is := item.(json.Number); return !is }) || len(v) > 3 {
			return errDimensions
		}
		return r.position(v)
	default:
		return errNoPoint
	}
}

// position checks a longitude, a latitude and an altitude.
func (r geoPointReader) position(numbers []any) error {
	if len(numbers) < 2 || len(numbers) > 3 || len(numbers) == 3 && r.flat {
		return errDimensions
	}
	var values [3]float64
	for i, n := range numbers {
		var is bool
		if values[i], is = doubleOf(n); !is {
			return errors.New("a coordinate is not a number")
		}
	}
	return within(values[1], values[0])
}

// object checks a point that is an object: with lat and lon, or GeoJSON.
func (r geoPointReader) object(members map[string]any) error {
	for name, v := range members {
		switch name {
		case "lat", "lon", "z":
			if n, is := doubleOf(v); !is || name != "z" && math.IsNaN(n) {
				return fmt.Errorf("%s is not a number", name)
			}
		case "type":
			if text, is := v.(string); !is || !strings.EqualFold(text, "point") {
				return errors.New("the type of a geo_point is Point")
			}
		case "coordinates":
		default:
			return fmt.Errorf("a point has no %q: it has lat, lon and z, or type and coordinates", name)
		}
	}
	lat, hasLat := members["lat"]
	lon, hasLon := members["lon"]
	coordinates, hasCoordinates := members["coordinates"]
	_, hasZ := members["z"]
	switch {
	case hasZ && r.flat:
		return errDimensions
	case hasCoordinates && (hasLat || hasLon), hasLat != hasLon, !hasCoordinates && !hasLat, hasCoordinates && members["type"] == nil:
		return errors.New("a point has lat and lon, or type and coordinates")
	case hasLat:
		return r.position([]any{lon, lat})
	}
	array, is := coordinates.([]any)
	if !is {
		return errors.New("coordinates is not an array")
	}
	return r.position(array)
}

// text checks a point that is a text: WKT, latitude and longitude, or a geohash.
func (r geoPointReader) text(text string) error {
	if strings.Contains(strings.ToLower(text), "point") {
		return r.wkt(text)
	}
	if !strings.Contains(text, ",") {
		return geohash(text)
	}
	parts := strings.Split(strings.TrimRight(text, ","), ",")
	if len(parts) < 2 {
		return errDimensions
	}
	numbers := []any{parts[1], parts[0]}
	for _, part := range parts[2:] {
		numbers = append(numbers, part)
	}
	return r.position(numbers)
}

// maxGeohash is the length from which on engines ignore the letters of a geohash.
const maxGeohash = 12

func geohash(text string) error {
	if text == "" {
		return errors.New("it is empty")
	}
	for _, letter := range text[:min(len(text), maxGeohash)] {
		if !strings.ContainsRune("0123456789bcdefghjkmnpqrstuvwxyz", letter) {
			return fmt.Errorf("%q is neither latitude and longitude nor a geohash nor WKT", text)
		}
	}
	return nil
}

// wkt checks a point in well-known text. What follows it is ignored.
func (r geoPointReader) wkt(text string) error {
	failed := errors.New("it is not a point in WKT, such as POINT (2.5 1.5)")
	name, rest := wktToken(text)
	opening, rest := wktToken(rest)
	switch {
	case !strings.EqualFold(name, "point"):
		return failed
	case strings.EqualFold(opening, "empty"):
		return nil
	case opening != "(":
		return failed
	}
	var numbers []any
	for len(numbers) < 4 {
		var token string
		if token, rest = wktToken(rest); token == ")" {
			return r.position(numbers)
		}
		numbers = append(numbers, token)
	}
	return failed
}

// wktToken returns the first word or character of a text, "" at its end, and what follows.
func wktToken(text string) (token, rest string) {
	text = strings.TrimLeft(text, " \t\r\n")
	end := strings.IndexFunc(text, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && r != '-' && r != '+' && r != '.'
	})
	switch {
	case end < 0:
		end = len(text)
	case end == 0:
		end = 1
	}
	return text[:end], text[end:]
}

// within checks the bounds of coordinates.
func within(lat, lon float64) error {
	switch {
	case !(math.Abs(lat) <= 90):
		return errors.New("the latitude is not between -90 and 90")
	case !(math.Abs(lon) <= 180):
		return errors.New("the longitude is not between -180 and 180")
	default:
		return nil
	}
}

// doubleOf returns the number of a JSON number, or of a text as Java reads a double; false for any other value.
func doubleOf(v any) (float64, bool) {
	text := ""
	switch v := v.(type) {
	case json.Number:
		text = v.String()
	case string:
		text = strings.TrimFunc(v, func(r rune) bool { return r <= ' ' })
		if strings.Trim(text, "+-.0123456789abcdefABCDEFxXpP") != "" && strings.TrimLeft(text, "+-") != "NaN" && strings.TrimLeft(text, "+-") != "Infinity" {
			return 0, false
		}
		if n := len(text) - 1; n > 0 && strings.ContainsRune("dDfF", rune(text[n])) {
			text = text[:n]
		}
		if strings.TrimLeft(text, "+-") == "NaN" && len(text) <= len("+NaN") {
			return math.NaN(), true
		}
	default:
		return 0, false
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil || errors.Is(err, strconv.ErrRange)
}
