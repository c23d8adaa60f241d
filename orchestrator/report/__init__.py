"""The static site: what people look at. `gather` reads, the views are pure functions of records, `site` writes."""
