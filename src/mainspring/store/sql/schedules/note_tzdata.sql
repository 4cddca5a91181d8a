-- All cursors of a lane are as this release of the time zone database has them, or a newer one.
update lane set tzdata = :tzdata::text where lane = :lane::smallint and tzdata < :tzdata::text collate "C"
