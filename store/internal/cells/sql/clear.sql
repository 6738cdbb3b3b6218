-- Deletes the locks, trees, freezes, rules and fenced values whose names are from one of $1 to the one of $2 at the same
-- place, exclusive.
with names as materialized (
    select first, beyond from unnest($1::text[], $2::text[]) as n (first, beyond)
), parts as (
    delete from paddock.parts using names where name >= first and name < beyond
), trees as (
    delete from paddock.trees using names where root >= first and root < beyond
), freezes as (
    delete from paddock.freezes using names where scope >= first and scope < beyond
), rules as (
    delete from paddock.rules using names where scope >= first and scope < beyond
), fenced as (
    delete from paddock.fenced using names where key >= first and key < beyond
), operations as (
    delete from paddock.fenced_operations using names where key >= first and key < beyond
)
delete from paddock.records using names where name >= first and name < beyond
