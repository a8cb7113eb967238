package schemas

import "strconv"

func (c *check) array(r *arrayRule, v *value, ev *evaluated) bool {
	items := v.items()
	ok := true
	if r.min != nil && len(items) < *r.min {
		ok = c.fault("minItems", "must have at least "+counted(*r.min, "item", "items")+", not "+strconv.Itoa(len(items)))
	}
	if r.max != nil && len(items) > *r.max {
		ok = c.fault("maxItems", "must have at most "+counted(*r.max, "item", "items")+", not "+strconv.Itoa(len(items)))
	}
	if r.unique && len(items) > 1 {
		ok = c.unique(items) && ok
	}
	for i := range items {
		if c.enough(ok) {
			return false
		}
		ok = c.item(r, items, i) && ok
	}
	ev.firstItems(len(r.prefix))
	if r.rest != nil {
		ev.firstItems(len(items))
	}
	if r.contains != nil && !c.enough(ok) {
		ok = c.contains(r, items, ev) && ok
	}
	return ok
}

func (c *check) item(r *arrayRule, items []value, i int) bool {
	at := token{index: i, item: true}
	switch {
	case i < len(r.prefix):
		return c.below(at, r.prefix[i], &items[i])
	case r.rest == nil:
		return true
	case r.rest.always != nil:
		return *r.rest.always || c.faultAt(at, r.restKeyword, "is an item more than the schema allows")
	default:
		return c.below(at, r.rest, &items[i])
	}
}

func (c *check) unique(items []value) bool {
	first := make(map[string]int, len(items))
	for i := range items {
		if !c.spendOn(&items[i]) {
			return false
		}
		key := string(canonical(nil, &items[i]))
		if j, twice := first[key]; twice {
			return c.fault("uniqueItems", "the items "+strconv.Itoa(j)+" and "+strconv.Itoa(i)+" are equal")
		}
		first[key] = i
	}
	return true
}

func (c *check) contains(r *arrayRule, items []value, ev *evaluated) bool {
	matched := 0
	for i := range items {
		if c.silently(r.contains, &items[i], nil) {
			matched++
			if r.containsEvaluates {
				ev.item(i)
			}
		}
		if c.err != nil {
			return false
		}
	}
	if matched < r.minContains {
		what := "of the kind that the schema wants"
		if r.contains.constant != nil {
			what = "that is " + listed(r.contains.constant.shown)
		}
		if r.minContains > 1 {
			return c.fault("minContains", "must have at least "+strconv.Itoa(r.minContains)+" items "+what+", not "+strconv.Itoa(matched))
		}
		return c.fault("contains", "must have an item "+what)
	}
	if r.maxContains != nil && matched > *r.maxContains {
		return c.fault("maxContains", "must have at most "+counted(*r.maxContains, "item", "items")+
			" of the kind that the schema names, not "+strconv.Itoa(matched))
	}
	return true
}
