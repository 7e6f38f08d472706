package metadata

// Changes calls visit for every topic that old and v hold differently, in id order, until visit returns
// false: older is nil for a topic that was created, newer for one that was deleted. A topic that was
// deleted and made anew under the same ids is one change; compare partition group ids. The cost is
// that of the changes, not of the size of the views. A nil old holds nothing.
func (v *View) Changes(old *View, visit func(older, newer *Topic) bool) {
	if old == nil {
		old = empty(v.limits)
	}
	more := true
	difference(old.streams, v.streams, func(_ uint32, a *Stream, was bool, b *Stream, is bool) bool {
		var none treeMap[uint32, *Topic]
		none.compare = v.streams.compare
		before, after := none, none
		if was {
			before = a.topics
		}
		if is {
			after = b.topics
		}
		difference(before, after, func(_ uint32, s *Topic, _ bool, t *Topic, _ bool) bool {
			more = s == t || visit(s, t)
			return more
		})
		return more
	})
}
