PRAGMA foreign_keys = OFF;
PRAGMA application_id = 1129467201;
PRAGMA user_version = 5;
BEGIN TRANSACTION;
CREATE TABLE attempts (
    job INTEGER NOT NULL REFERENCES jobs (id) ON DELETE CASCADE,
    number INTEGER NOT NULL,
    placement TEXT NOT NULL,
    launched INTEGER NOT NULL,
    supervisor_pid INTEGER,
    supervisor_started INTEGER,
    ended INTEGER,
    exit TEXT,
    verdict TEXT,
    peaks TEXT,
    smact REAL,
    smocc REAL,
    drama REAL,
    utilisation REAL,
    joules REAL,
    PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;
INSERT INTO "attempts" VALUES(1,1,'{"server":0,"devices":[{"device":"s0/gpu0","promised":5120,"limits":"streams"}]}',1794960900054,NULL,NULL,1794961033067,'{"code":0}','"succeeded"','[4096]',3.65253719627180062357e-01,0.185342304950781,3.13719762521316170023e-01,0.533903871660456,18973.005);
INSERT INTO "attempts" VALUES(2,1,'{"server":0,"devices":[]}',1794960902285,NULL,NULL,1794960906817,'{"code":3}','{"failed":{"code":3}}','[]',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(3,1,'{"server":0,"devices":[{"device":"s0/gpu1","promised":3072,"limits":"streams"}]}',1794960905473,NULL,NULL,1794960912272,'{"code":1}','"out_of_memory"','[0]',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(3,2,'{"server":0,"devices":[{"device":"s0/gpu1","promised":5632,"limits":"streams"}]}',1794960912295,NULL,NULL,1794960916733,'{"code":0}','"succeeded"','[0]',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(4,1,'{"server":0,"devices":[]}',1794960912665,NULL,NULL,1794961031715,'{"signal":15}','{"failed":{"code":143}}','[]',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(5,1,'{"server":0,"devices":[]}',1794960917328,NULL,NULL,1794960921811,'{"signal":15}','{"failed":{"code":143}}','[]',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(6,1,'{"server":0,"devices":[]}',1794960922727,NULL,NULL,1794960929198,'{"not_started":"cannot run ./not-there: No such file or directory (os error 2)"}','{"could_not_start":{"reason":"cannot run ./not-there: No such file or directory (os error 2)"}}','[]',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(7,1,'{"server":0,"devices":[]}',1794960930069,NULL,NULL,1794961055793,'{"code":1}','{"failed":{"code":1}}','[]',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(9,1,'{"server":0,"devices":[]}',1794960935876,NULL,NULL,1794960940930,'{"code":0}','"succeeded"','[]',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(10,1,'{"server":0,"devices":[]}',1794960935882,NULL,NULL,1794960941156,'{"code":0}','"succeeded"','[]',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(11,1,'{"server":0,"devices":[]}',1794960940953,NULL,NULL,1794960948916,'{"code":0}','"succeeded"','[]',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(12,1,'{"server":0,"devices":[{"device":"s0/gpu1","promised":1024,"limits":"streams"}]}',1794960942906,NULL,NULL,1794960950287,'{"code":0}','"succeeded"','[0]',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(13,1,'{"server":0,"devices":[{"device":"s0/gpu1","promised":1024,"limits":"streams"}]}',1794960950318,NULL,NULL,1794960955718,'{"code":0}','"succeeded"','[0]',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(14,1,'{"server":0,"devices":[{"device":"s0/gpu0","promised":1024,"limits":"streams"}]}',1794960952164,NULL,NULL,1794960960107,'{"code":0}','"succeeded"','[0]',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(15,1,'{"server":0,"devices":[{"device":"s0/gpu1","promised":1024,"limits":"streams"}]}',1794960955739,NULL,NULL,1794960962388,'{"code":0}','"succeeded"','[0]',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(16,1,'{"server":0,"devices":[]}',1794960948541,NULL,NULL,1794961099076,'{"signal":15}','{"failed":{"code":143}}','[]',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(16,2,'{"server":0,"devices":[]}',1794961099093,NULL,NULL,1794961173293,'{"signal":15}','{"failed":{"code":143}}','[]',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(17,1,'{"server":0,"devices":[{"device":"s0/gpu1","promised":3098,"limits":"streams"}]}',1794960967785,NULL,NULL,1794960971279,'{"code":0}','"succeeded"','[0]',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(19,1,'{"server":0,"devices":[]}',1794961028654,NULL,NULL,1794961033126,'{"code":0}','"succeeded"','[]',NULL,NULL,NULL,NULL,NULL);
INSERT INTO "attempts" VALUES(20,1,'{"server":0,"devices":[{"device":"s0/gpu0","promised":5120,"limits":"streams"}]}',1794961225840,NULL,NULL,1794961352779,'{"code":0}','"succeeded"','[4096]',3.61025381209156059902e-01,1.8324572367246366733e-01,3.10162071920865534124e-01,5.31114612720065881745e-01,19029.316);
INSERT INTO "attempts" VALUES(21,1,'{"server":0,"devices":[{"device":"s0/gpu0","promised":4278,"limits":"streams"}]}',1794961357249,NULL,NULL,1794961488992,'{"code":0}','"succeeded"','[4096]',3.6379774289931249287e-01,1.84603747435112847119e-01,3.12542487130566204456e-01,5.34192195543395920154e-01,18979.655);
CREATE TABLE drained (
    device TEXT PRIMARY KEY,
    since INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "drained" VALUES('s0/gpu0',1794961491887);
INSERT INTO "drained" VALUES('s0/gpu1',1794961492984);
CREATE TABLE events (
    sequence INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    job INTEGER,
    kind TEXT NOT NULL,
    body TEXT NOT NULL
) STRICT;
INSERT INTO "events" VALUES(1,1794960900053,1,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(2,1794960900054,1,'launched','{"attempt":1,"placement":{"devices":[{"device":"s0/gpu0","limits":"streams","promised":5120}],"server":0},"reason":{"way":"idle"}}');
INSERT INTO "events" VALUES(3,1794960902284,2,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(4,1794960902285,2,'launched','{"attempt":1,"placement":{"devices":[],"server":0},"reason":{}}');
INSERT INTO "events" VALUES(5,1794960905472,3,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(6,1794960905473,3,'launched','{"attempt":1,"placement":{"devices":[{"device":"s0/gpu1","limits":"streams","promised":3072}],"server":0},"reason":{"way":"idle"}}');
INSERT INTO "events" VALUES(7,1794960906824,2,'ended','{"attempt":1,"because":"it exited with code 3","verdict":{"failed":{"code":3}},"whose":null}');
INSERT INTO "events" VALUES(8,1794960906829,2,'finished','{"outcome":{"failed":{"code":3}},"text":"failed with exit code 3"}');
INSERT INTO "events" VALUES(9,1794960912279,3,'ended','{"attempt":1,"because":"GPU memory ran out: of the GPU''s 40.0 GiB it had 0.0, others had 0.0, and 40.0 were free","verdict":"out_of_memory","whose":"job"}');
INSERT INTO "events" VALUES(10,1794960912294,3,'requeued','{"floor":5632,"reason":{"after":"out_of_memory"},"whole_gpu":false}');
INSERT INTO "events" VALUES(11,1794960912295,3,'launched','{"attempt":2,"placement":{"devices":[{"device":"s0/gpu1","limits":"streams","promised":5632}],"server":0},"reason":{"way":"idle"}}');
INSERT INTO "events" VALUES(12,1794960912664,4,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(13,1794960912665,4,'launched','{"attempt":1,"placement":{"devices":[],"server":0},"reason":{}}');
INSERT INTO "events" VALUES(14,1794960916741,3,'ended','{"attempt":2,"because":"it exited with code 0","verdict":"succeeded","whose":null}');
INSERT INTO "events" VALUES(15,1794960916749,3,'finished','{"outcome":"succeeded","text":"succeeded"}');
INSERT INTO "events" VALUES(16,1794960917328,5,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(17,1794960917328,5,'launched','{"attempt":1,"placement":{"devices":[],"server":0},"reason":{}}');
INSERT INTO "events" VALUES(18,1794960919331,5,'signalled','{"attempt":1,"reason":"time_limit","signal":"terminate"}');
INSERT INTO "events" VALUES(19,1794960921819,5,'ended','{"attempt":1,"because":"it was told to end: its time was up","verdict":{"failed":{"code":143}},"whose":"orders"}');
INSERT INTO "events" VALUES(20,1794960921823,5,'finished','{"outcome":"time_limit","text":"reached its time limit"}');
INSERT INTO "events" VALUES(21,1794960922727,6,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(22,1794960922727,6,'launched','{"attempt":1,"placement":{"devices":[],"server":0},"reason":{}}');
INSERT INTO "events" VALUES(23,1794960929206,6,'ended','{"attempt":1,"because":"cannot run ./not-there: No such file or directory (os error 2)","verdict":{"could_not_start":{"reason":"cannot run ./not-there: No such file or directory (os error 2)"}},"whose":null}');
INSERT INTO "events" VALUES(24,1794960929210,6,'finished','{"outcome":{"could_not_start":{"reason":"cannot run ./not-there: No such file or directory (os error 2)"}},"text":"could not start: cannot run ./not-there: No such file or directory (os error 2)"}');
INSERT INTO "events" VALUES(25,1794960930069,7,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(26,1794960930069,7,'launched','{"attempt":1,"placement":{"devices":[],"server":0},"reason":{}}');
INSERT INTO "events" VALUES(27,1794960933782,8,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(28,1794960935875,9,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(29,1794960935876,9,'launched','{"attempt":1,"placement":{"devices":[],"server":0},"reason":{}}');
INSERT INTO "events" VALUES(30,1794960935882,10,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(31,1794960935882,10,'launched','{"attempt":1,"placement":{"devices":[],"server":0},"reason":{}}');
INSERT INTO "events" VALUES(32,1794960935887,11,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(33,1794960940937,9,'ended','{"attempt":1,"because":"it exited with code 0","verdict":"succeeded","whose":null}');
INSERT INTO "events" VALUES(34,1794960940952,9,'finished','{"outcome":"succeeded","text":"succeeded"}');
INSERT INTO "events" VALUES(35,1794960940953,11,'launched','{"attempt":1,"placement":{"devices":[],"server":0},"reason":{}}');
INSERT INTO "events" VALUES(36,1794960941160,10,'ended','{"attempt":1,"because":"it exited with code 0","verdict":"succeeded","whose":null}');
INSERT INTO "events" VALUES(37,1794960941164,10,'finished','{"outcome":"succeeded","text":"succeeded"}');
INSERT INTO "events" VALUES(38,1794960942906,12,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(39,1794960942906,12,'launched','{"attempt":1,"placement":{"devices":[{"device":"s0/gpu1","limits":"streams","promised":1024}],"server":0},"reason":{"way":"idle"}}');
INSERT INTO "events" VALUES(40,1794960942917,13,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(41,1794960942920,14,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(42,1794960942926,15,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(43,1794960948541,16,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(44,1794960948541,16,'launched','{"attempt":1,"placement":{"devices":[],"server":0},"reason":{}}');
INSERT INTO "events" VALUES(45,1794960948926,11,'ended','{"attempt":1,"because":"it exited with code 0","verdict":"succeeded","whose":null}');
INSERT INTO "events" VALUES(46,1794960948936,11,'finished','{"outcome":"succeeded","text":"succeeded"}');
INSERT INTO "events" VALUES(47,1794960950295,12,'ended','{"attempt":1,"because":"it exited with code 0","verdict":"succeeded","whose":null}');
INSERT INTO "events" VALUES(48,1794960950315,12,'finished','{"outcome":"succeeded","text":"succeeded"}');
INSERT INTO "events" VALUES(49,1794960950318,13,'launched','{"attempt":1,"placement":{"devices":[{"device":"s0/gpu1","limits":"streams","promised":1024}],"server":0},"reason":{"way":"idle"}}');
INSERT INTO "events" VALUES(50,1794960952164,14,'launched','{"attempt":1,"placement":{"devices":[{"device":"s0/gpu0","limits":"streams","promised":1024}],"server":0},"reason":{"way":"share"}}');
INSERT INTO "events" VALUES(51,1794960955635,17,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(52,1794960955623,17,'estimating','{}');
INSERT INTO "events" VALUES(53,1794960955724,13,'ended','{"attempt":1,"because":"it exited with code 0","verdict":"succeeded","whose":null}');
INSERT INTO "events" VALUES(54,1794960955738,13,'finished','{"outcome":"succeeded","text":"succeeded"}');
INSERT INTO "events" VALUES(55,1794960955739,15,'launched','{"attempt":1,"placement":{"devices":[{"device":"s0/gpu1","limits":"streams","promised":1024}],"server":0},"reason":{"way":"idle"}}');
INSERT INTO "events" VALUES(56,1794960960115,14,'ended','{"attempt":1,"because":"it exited with code 0","verdict":"succeeded","whose":null}');
INSERT INTO "events" VALUES(57,1794960960123,14,'finished','{"outcome":"succeeded","text":"succeeded"}');
INSERT INTO "events" VALUES(58,1794960962138,18,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(59,1794960961966,18,'estimating','{}');
INSERT INTO "events" VALUES(60,1794960962395,15,'ended','{"attempt":1,"because":"it exited with code 0","verdict":"succeeded","whose":null}');
INSERT INTO "events" VALUES(61,1794960962404,15,'finished','{"outcome":"succeeded","text":"succeeded"}');
INSERT INTO "events" VALUES(62,1794960965377,19,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(63,1794960967785,17,'launched','{"attempt":1,"placement":{"devices":[{"device":"s0/gpu1","limits":"streams","promised":3098}],"server":0},"reason":{"way":"idle"}}');
INSERT INTO "events" VALUES(64,1794960967790,17,'estimated','{"memory":{"expected":2734,"upper":3098},"notes":["activations after a normalisation or convolution are taken to run in place, as in torchvision and timm"],"parts":[{"memory":45,"name":"weights"},{"memory":2,"name":"gradients"},{"memory":89,"name":"optimizer"},{"memory":1360,"name":"activations"},{"memory":38,"name":"workspace"},{"memory":677,"name":"fragmentation"},{"memory":524,"name":"context"}],"source":"static","utilisation":{"drama":0.32218186144497135,"smact":0.6390912060991241,"smocc":0.313128853565388}}');
INSERT INTO "events" VALUES(65,1794960971294,17,'ended','{"attempt":1,"because":"it exited with code 0","verdict":"succeeded","whose":null}');
INSERT INTO "events" VALUES(66,1794960971305,17,'finished','{"outcome":"succeeded","text":"succeeded"}');
INSERT INTO "events" VALUES(67,1794960973604,18,'estimated','{"memory":{"expected":132674,"upper":150325},"notes":["activations after a normalisation or convolution are taken to run in place, as in torchvision and timm"],"parts":[{"memory":45,"name":"weights"},{"memory":2,"name":"gradients"},{"memory":89,"name":"optimizer"},{"memory":87040,"name":"activations"},{"memory":809,"name":"workspace"},{"memory":44165,"name":"fragmentation"},{"memory":524,"name":"context"}],"source":"static","utilisation":{"drama":0.35094804307846034,"smact":0.7112344014092287,"smocc":0.3259302565166422}}');
INSERT INTO "events" VALUES(68,1794960973605,18,'over_limit','{"text":"a job may have 30000 MiB on a GPU here, and it is expected to need 132674 MiB"}');
INSERT INTO "events" VALUES(69,1794960973606,18,'finished','{"outcome":"cancelled","text":"cancelled"}');
INSERT INTO "events" VALUES(70,1794961028653,19,'released','{"by":"ada"}');
INSERT INTO "events" VALUES(71,1794961028654,19,'launched','{"attempt":1,"placement":{"devices":[],"server":0},"reason":{}}');
INSERT INTO "events" VALUES(72,1794961030784,4,'cancelled','{"by":"ada"}');
INSERT INTO "events" VALUES(73,1794961030785,4,'signalled','{"attempt":1,"reason":"cancelled","signal":"terminate"}');
INSERT INTO "events" VALUES(74,1794961031722,4,'ended','{"attempt":1,"because":"it was told to end: the job was cancelled","verdict":{"failed":{"code":143}},"whose":"orders"}');
INSERT INTO "events" VALUES(75,1794961031726,4,'finished','{"outcome":"cancelled","text":"cancelled"}');
INSERT INTO "events" VALUES(76,1794961033109,1,'ended','{"attempt":1,"because":"it exited with code 0","verdict":"succeeded","whose":null}');
INSERT INTO "events" VALUES(77,1794961033113,1,'finished','{"outcome":"succeeded","text":"succeeded"}');
INSERT INTO "events" VALUES(78,1794961033129,19,'ended','{"attempt":1,"because":"it exited with code 0","verdict":"succeeded","whose":null}');
INSERT INTO "events" VALUES(79,1794961033130,19,'finished','{"outcome":"succeeded","text":"succeeded"}');
INSERT INTO "events" VALUES(80,1794961055803,7,'ended','{"attempt":1,"because":"it exited with code 1","verdict":{"failed":{"code":1}},"whose":null}');
INSERT INTO "events" VALUES(81,1794961055810,7,'finished','{"outcome":{"failed":{"code":1}},"text":"failed with exit code 1"}');
INSERT INTO "events" VALUES(82,1794961055812,8,'finished','{"outcome":{"dependency_failed":{"on":7}},"text":"not run, because job 7 did not succeed"}');
INSERT INTO "events" VALUES(83,1794961096592,16,'requeue_asked','{"by":"ada"}');
INSERT INTO "events" VALUES(84,1794961096594,16,'signalled','{"attempt":1,"reason":"requeued","signal":"checkpoint"}');
INSERT INTO "events" VALUES(85,1794961099083,16,'ended','{"attempt":1,"because":"it was told to end: it is to run again later","verdict":{"failed":{"code":143}},"whose":"orders"}');
INSERT INTO "events" VALUES(86,1794961099092,16,'requeued','{"floor":0,"reason":"requested","whole_gpu":false}');
INSERT INTO "events" VALUES(87,1794961099093,16,'launched','{"attempt":2,"placement":{"devices":[],"server":0},"reason":{}}');
INSERT INTO "events" VALUES(88,1794961172680,16,'cancelled','{"by":"ada"}');
INSERT INTO "events" VALUES(89,1794961172681,16,'signalled','{"attempt":2,"reason":"cancelled","signal":"terminate"}');
INSERT INTO "events" VALUES(90,1794961173301,16,'ended','{"attempt":2,"because":"it was told to end: the job was cancelled","verdict":{"failed":{"code":143}},"whose":"orders"}');
INSERT INTO "events" VALUES(91,1794961173306,16,'finished','{"outcome":"cancelled","text":"cancelled"}');
INSERT INTO "events" VALUES(92,1794961225837,20,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(93,1794961225837,20,'estimated','{"duration":133.033,"memory":{"expected":4096,"upper":4352},"notes":[],"parts":[],"source":"history","utilisation":{"drama":0.31371976252131617,"smact":0.36525371962718006,"smocc":0.185342304950781}}');
INSERT INTO "events" VALUES(94,1794961225840,20,'launched','{"attempt":1,"placement":{"devices":[{"device":"s0/gpu0","limits":"streams","promised":5120}],"server":0},"reason":{"way":"idle"}}');
INSERT INTO "events" VALUES(95,1794961352820,20,'ended','{"attempt":1,"because":"it exited with code 0","verdict":"succeeded","whose":null}');
INSERT INTO "events" VALUES(96,1794961352828,20,'finished','{"outcome":"succeeded","text":"succeeded"}');
INSERT INTO "events" VALUES(97,1794961357245,21,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(98,1794961357246,21,'estimated','{"duration":130.0,"memory":{"expected":4096,"upper":4278},"notes":[],"parts":[],"source":"history","utilisation":{"drama":0.31194091722109085,"smact":0.36313955041816803,"smocc":0.18429401431162235}}');
INSERT INTO "events" VALUES(99,1794961357249,21,'launched','{"attempt":1,"placement":{"devices":[{"device":"s0/gpu0","limits":"streams","promised":4278}],"server":0},"reason":{"way":"idle"}}');
INSERT INTO "events" VALUES(100,1794961489032,21,'ended','{"attempt":1,"because":"it exited with code 0","verdict":"succeeded","whose":null}');
INSERT INTO "events" VALUES(101,1794961489044,21,'finished','{"outcome":"succeeded","text":"succeeded"}');
INSERT INTO "events" VALUES(102,1794961491889,NULL,'machine','{"text":"s0/gpu0 is drained by ada"}');
INSERT INTO "events" VALUES(103,1794961492986,NULL,'machine','{"text":"s0/gpu1 is drained by ada"}');
INSERT INTO "events" VALUES(104,1794961495121,22,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(105,1794961497810,23,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(106,1794961498985,23,'held','{"by":"ada"}');
INSERT INTO "events" VALUES(107,1794961503029,24,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(108,1794961506396,25,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(109,1794961508353,26,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(110,1794961508356,27,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(111,1794961511612,28,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(112,1794961634914,29,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(113,1794961634865,29,'estimating','{}');
INSERT INTO "events" VALUES(114,1794961638536,29,'held','{"by":"ada"}');
INSERT INTO "events" VALUES(115,1794961663847,29,'estimated','{"notes":["no estimate: the script could not be dry-run (see above); with --model FILE there would be a static answer"],"parts":[],"source":null}');
INSERT INTO "events" VALUES(116,1794961760171,30,'submitted','{"user":"ada"}');
INSERT INTO "events" VALUES(117,1794961760036,30,'estimating','{}');
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    sequence INTEGER NOT NULL,
    name TEXT,
    uid INTEGER NOT NULL,
    gid INTEGER NOT NULL,
    user TEXT NOT NULL,
    phase TEXT NOT NULL,
    since INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    gpus INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    array INTEGER,
    array_index INTEGER,
    submitted INTEGER NOT NULL,
    ended INTEGER,
    outcome TEXT
) STRICT;
INSERT INTO "jobs" VALUES(1,1,'succeeds',1000,1000,'ada','done',1794961033141,0,1,1,NULL,NULL,1794960900029,1794961033141,'"succeeded"');
INSERT INTO "jobs" VALUES(2,2,'fails',1000,1000,'ada','done',1794960906836,0,0,1,NULL,NULL,1794960902266,1794960906836,'{"failed":{"code":3}}');
INSERT INTO "jobs" VALUES(3,3,'recovers',1000,1000,'ada','done',1794960916752,0,1,2,NULL,NULL,1794960905452,1794960916752,'"succeeded"');
INSERT INTO "jobs" VALUES(4,4,'cancelled',1000,1000,'ada','done',1794961031733,0,0,1,NULL,NULL,1794960912648,1794961031733,'"cancelled"');
INSERT INTO "jobs" VALUES(5,5,'too-slow',1000,1000,'ada','done',1794960922115,0,0,1,NULL,NULL,1794960917315,1794960922115,'"time_limit"');
INSERT INTO "jobs" VALUES(6,6,'cannot-start',1000,1000,'ada','done',1794960929609,0,0,1,NULL,NULL,1794960922715,1794960929609,'{"could_not_start":{"reason":"cannot run ./not-there: No such file or directory (os error 2)"}}');
INSERT INTO "jobs" VALUES(7,7,'first',1000,1000,'ada','done',1794961055816,0,0,1,NULL,NULL,1794960930052,1794961055816,'{"failed":{"code":1}}');
INSERT INTO "jobs" VALUES(8,8,'never-runs',1000,1000,'ada','done',1794961055816,0,0,0,NULL,NULL,1794960933775,1794961055816,'{"dependency_failed":{"on":7}}');
INSERT INTO "jobs" VALUES(9,9,'array',1000,1000,'ada','done',1794960941038,0,0,1,9,1,1794960935862,1794960941038,'"succeeded"');
INSERT INTO "jobs" VALUES(10,10,'array',1000,1000,'ada','done',1794960944653,0,0,1,9,2,1794960935862,1794960944653,'"succeeded"');
INSERT INTO "jobs" VALUES(11,11,'array',1000,1000,'ada','done',1794960949265,0,0,1,9,3,1794960935862,1794960949265,'"succeeded"');
INSERT INTO "jobs" VALUES(12,12,'sweep',1000,1000,'ada','done',1794960950323,0,1,1,12,0,1794960942885,1794960950323,'"succeeded"');
INSERT INTO "jobs" VALUES(13,13,'sweep',1000,1000,'ada','done',1794960956015,0,1,1,12,1,1794960942885,1794960956015,'"succeeded"');
INSERT INTO "jobs" VALUES(14,14,'sweep',1000,1000,'ada','done',1794960960167,0,1,1,12,2,1794960942885,1794960960167,'"succeeded"');
INSERT INTO "jobs" VALUES(15,15,'sweep',1000,1000,'ada','done',1794960963142,0,1,1,12,3,1794960942885,1794960963142,'"succeeded"');
INSERT INTO "jobs" VALUES(16,16,'requeued',1000,1000,'ada','done',1794961173360,0,0,2,NULL,NULL,1794960948527,1794961173360,'"cancelled"');
INSERT INTO "jobs" VALUES(17,17,'estimated',1000,1000,'ada','done',1794960971399,0,1,1,NULL,NULL,1794960955623,1794960971399,'"succeeded"');
INSERT INTO "jobs" VALUES(18,18,'over-limit',1000,1000,'ada','done',1794960973608,0,1,0,NULL,NULL,1794960961966,1794960973608,'"cancelled"');
INSERT INTO "jobs" VALUES(19,19,'released',1000,1000,'ada','done',1794961033141,0,0,1,NULL,NULL,1794960965369,1794961033141,'"succeeded"');
INSERT INTO "jobs" VALUES(20,20,'remembered',1000,1000,'ada','done',1794961352906,0,1,1,NULL,NULL,1794961225811,1794961352906,'"succeeded"');
INSERT INTO "jobs" VALUES(21,21,'recalled',1000,1000,'ada','done',1794961489048,0,1,1,NULL,NULL,1794961357219,1794961489048,'"succeeded"');
INSERT INTO "jobs" VALUES(22,22,'held',1000,1000,'ada','held',1794961495112,0,1,0,NULL,NULL,1794961495112,NULL,NULL);
INSERT INTO "jobs" VALUES(23,23,'held-later',1000,1000,'ada','held',1794961498987,0,1,0,NULL,NULL,1794961497796,NULL,NULL);
INSERT INTO "jobs" VALUES(24,24,'waits',1000,1000,'ada','queued',1794961503013,-3,1,0,NULL,NULL,1794961503013,NULL,NULL);
INSERT INTO "jobs" VALUES(25,25,'after-held',1000,1000,'ada','queued',1794961506387,0,1,0,NULL,NULL,1794961506387,NULL,NULL);
INSERT INTO "jobs" VALUES(26,26,'waiting-array',1000,1000,'ada','queued',1794961508341,0,1,0,26,0,1794961508341,NULL,NULL);
INSERT INTO "jobs" VALUES(27,27,'waiting-array',1000,1000,'ada','queued',1794961508341,0,1,0,26,1,1794961508341,NULL,NULL);
INSERT INTO "jobs" VALUES(28,28,'begins-later',1000,1000,'ada','queued',1794961511603,0,1,0,NULL,NULL,1794961511603,NULL,NULL);
INSERT INTO "jobs" VALUES(29,29,'held-while-estimated',1000,1000,'ada','held',1794961634865,0,1,0,NULL,NULL,1794961634865,NULL,NULL);
INSERT INTO "jobs" VALUES(30,30,'being-estimated',1000,1000,'ada','held',1794961760036,0,1,0,NULL,NULL,1794961760036,NULL,NULL);
CREATE TABLE machine_changes (
    change TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
CREATE TABLE memory_steps (
    job INTEGER NOT NULL,
    number INTEGER NOT NULL,
    device TEXT NOT NULL,
    at INTEGER NOT NULL,
    memory INTEGER NOT NULL,
    PRIMARY KEY (job, number, device, at),
    FOREIGN KEY (job, number) REFERENCES attempts (job, number) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
INSERT INTO "memory_steps" VALUES(1,1,'s0/gpu0',1794960921683,420);
INSERT INTO "memory_steps" VALUES(1,1,'s0/gpu0',1794960927200,3276);
INSERT INTO "memory_steps" VALUES(1,1,'s0/gpu0',1794960952340,3686);
INSERT INTO "memory_steps" VALUES(1,1,'s0/gpu0',1794960982378,4096);
INSERT INTO "memory_steps" VALUES(20,1,'s0/gpu0',1794961241716,420);
INSERT INTO "memory_steps" VALUES(20,1,'s0/gpu0',1794961248052,3276);
INSERT INTO "memory_steps" VALUES(20,1,'s0/gpu0',1794961272390,3686);
INSERT INTO "memory_steps" VALUES(20,1,'s0/gpu0',1794961302366,4096);
INSERT INTO "memory_steps" VALUES(21,1,'s0/gpu0',1794961377914,420);
INSERT INTO "memory_steps" VALUES(21,1,'s0/gpu0',1794961382915,3276);
INSERT INTO "memory_steps" VALUES(21,1,'s0/gpu0',1794961407915,3686);
INSERT INTO "memory_steps" VALUES(21,1,'s0/gpu0',1794961437897,4096);
CREATE TABLE notifications (
    uid INTEGER NOT NULL,
    channel TEXT NOT NULL,
    occasions TEXT NOT NULL,
    place INTEGER NOT NULL,
    told INTEGER NOT NULL,
    PRIMARY KEY (uid, channel)
) STRICT, WITHOUT ROWID;
CREATE TABLE numbers (
    name TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "numbers" VALUES('clock',927510);
INSERT INTO "numbers" VALUES('next_job',31);
CREATE TABLE requests (
    job INTEGER PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    request TEXT NOT NULL
) STRICT;
INSERT INTO "requests" VALUES(1,'{"name":"succeeds","command":{"program":["./train","emu","train","--workload","resnet50_imagenet_bs64","--seconds","120","--memory","4GiB","--seed","1"]},"directory":"/home/ada/project","environment":{"CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin","WANDB_API_KEY":"secret"},"resources":{"gpus":1,"memory":5120,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false}');
INSERT INTO "requests" VALUES(2,'{"name":"fails","command":{"program":["sh","-c","echo no data >&2; exit 3"]},"directory":"/home/ada/project","environment":{"CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":0,"memory":null,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false}');
INSERT INTO "requests" VALUES(3,'{"name":"recovers","command":{"program":["sh","-c","test -e again && exit 0; touch again; echo ''torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB'' >&2; exit 1"]},"directory":"/home/ada/project","environment":{"CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":1,"memory":3072,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false}');
INSERT INTO "requests" VALUES(4,'{"name":"cancelled","command":{"program":["sleep","600"]},"directory":"/home/ada/project","environment":{"CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":0,"memory":null,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false}');
INSERT INTO "requests" VALUES(5,'{"name":"too-slow","command":{"program":["sleep","600"]},"directory":"/home/ada/project","environment":{"CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":0,"memory":null,"cpus":null,"host_memory":null,"time_limit":2.0,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false}');
INSERT INTO "requests" VALUES(6,'{"name":"cannot-start","command":{"program":["./not-there"]},"directory":"/home/ada/project","environment":{"CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":0,"memory":null,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false}');
INSERT INTO "requests" VALUES(7,'{"name":"first","command":{"program":["sh","-c","sleep 2; exit 1"]},"directory":"/home/ada/project","environment":{"CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":0,"memory":null,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false}');
INSERT INTO "requests" VALUES(8,'{"name":"never-runs","command":{"program":["true"]},"directory":"/home/ada/project","environment":{"CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":0,"memory":null,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[{"job":"7","condition":"ok"}],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false}');
INSERT INTO "requests" VALUES(9,'{"name":"array","command":{"program":["sh","-c","echo $CARMA_ARRAY_INDEX"]},"directory":"/home/ada/project","environment":{"CARMA_ARRAY_INDEX":"1","CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":0,"memory":null,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":2},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false,"array":{"index":1}}');
INSERT INTO "requests" VALUES(10,'{"name":"array","command":{"program":["sh","-c","echo $CARMA_ARRAY_INDEX"]},"directory":"/home/ada/project","environment":{"CARMA_ARRAY_INDEX":"2","CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":0,"memory":null,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":2},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false,"array":{"index":2}}');
INSERT INTO "requests" VALUES(11,'{"name":"array","command":{"program":["sh","-c","echo $CARMA_ARRAY_INDEX"]},"directory":"/home/ada/project","environment":{"CARMA_ARRAY_INDEX":"3","CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":0,"memory":null,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":2},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false,"array":{"index":3}}');
INSERT INTO "requests" VALUES(12,'{"name":"sweep","command":{"program":["sh","-c","true","0.1","1"]},"directory":"/home/ada/project","environment":{"CARMA_ARRAY_INDEX":"0","CARMA_PARAM_LR":"0.1","CARMA_PARAM_SEED":"1","CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":1,"memory":1024,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false,"array":{"index":0,"parameters":{"lr":"0.1","seed":"1"}}}');
INSERT INTO "requests" VALUES(13,'{"name":"sweep","command":{"program":["sh","-c","true","0.1","2"]},"directory":"/home/ada/project","environment":{"CARMA_ARRAY_INDEX":"1","CARMA_PARAM_LR":"0.1","CARMA_PARAM_SEED":"2","CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":1,"memory":1024,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false,"array":{"index":1,"parameters":{"lr":"0.1","seed":"2"}}}');
INSERT INTO "requests" VALUES(14,'{"name":"sweep","command":{"program":["sh","-c","true","0.01","1"]},"directory":"/home/ada/project","environment":{"CARMA_ARRAY_INDEX":"2","CARMA_PARAM_LR":"0.01","CARMA_PARAM_SEED":"1","CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":1,"memory":1024,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false,"array":{"index":2,"parameters":{"lr":"0.01","seed":"1"}}}');
INSERT INTO "requests" VALUES(15,'{"name":"sweep","command":{"program":["sh","-c","true","0.01","2"]},"directory":"/home/ada/project","environment":{"CARMA_ARRAY_INDEX":"3","CARMA_PARAM_LR":"0.01","CARMA_PARAM_SEED":"2","CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":1,"memory":1024,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false,"array":{"index":3,"parameters":{"lr":"0.01","seed":"2"}}}');
INSERT INTO "requests" VALUES(16,'{"name":"requeued","command":{"program":["sh","-c","sleep 600"]},"directory":"/home/ada/project","environment":{"CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":0,"memory":null,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":true,"snapshot":false,"interactive":false}');
INSERT INTO "requests" VALUES(17,'{"name":"estimated","command":{"program":["true"]},"directory":"/home/ada/project","environment":{"CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":1,"memory":null,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":"/home/ada/project/resnet18/torchinfo.txt","batch":64,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false}');
INSERT INTO "requests" VALUES(18,'{"name":"over-limit","command":{"program":["true"]},"directory":"/home/ada/project","environment":{"CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":1,"memory":null,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":"/home/ada/project/resnet18/torchinfo.txt","batch":4096,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false}');
INSERT INTO "requests" VALUES(19,'{"name":"released","command":{"program":["true"]},"directory":"/home/ada/project","environment":{"CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":0,"memory":null,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":true,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false}');
INSERT INTO "requests" VALUES(20,'{"name":"remembered","command":{"program":["./train","emu","train","--workload","resnet50_imagenet_bs64","--seconds","120","--memory","4GiB","--seed","1"]},"directory":"/home/ada/project","environment":{"CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":1,"memory":5120,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false}');
INSERT INTO "requests" VALUES(21,'{"name":"recalled","command":{"program":["./train","emu","train","--workload","resnet50_imagenet_bs64","--seconds","120","--memory","4GiB","--seed","1"]},"directory":"/home/ada/project","environment":{"CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":1,"memory":null,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false}');
INSERT INTO "requests" VALUES(22,'{"name":"held","command":{"program":["true"]},"directory":"/home/ada/project","environment":{"CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":1,"memory":null,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":true,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false}');
INSERT INTO "requests" VALUES(23,'{"name":"held-later","command":{"program":["true"]},"directory":"/home/ada/project","environment":{"CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":1,"memory":2048,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false}');
INSERT INTO "requests" VALUES(24,'{"name":"waits","command":{"program":["true"]},"directory":"/home/ada/project","environment":{"CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":1,"memory":2048,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":-3,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false}');
INSERT INTO "requests" VALUES(25,'{"name":"after-held","command":{"program":["true"]},"directory":"/home/ada/project","environment":{"CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":1,"memory":2048,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[{"job":"22","condition":"any"}],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false}');
INSERT INTO "requests" VALUES(26,'{"name":"waiting-array","command":{"program":["true"]},"directory":"/home/ada/project","environment":{"CARMA_ARRAY_INDEX":"0","CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":1,"memory":2048,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false,"array":{"index":0}}');
INSERT INTO "requests" VALUES(27,'{"name":"waiting-array","command":{"program":["true"]},"directory":"/home/ada/project","environment":{"CARMA_ARRAY_INDEX":"1","CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":1,"memory":2048,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false,"array":{"index":1}}');
INSERT INTO "requests" VALUES(28,'{"name":"begins-later","command":{"program":["true"]},"directory":"/home/ada/project","environment":{"CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":1,"memory":2048,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":7226582400,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":false},"may_checkpoint":false,"snapshot":false,"interactive":false}');
INSERT INTO "requests" VALUES(29,'{"name":"held-while-estimated","command":{"program":["python3","slow.py"]},"directory":"/home/ada/project","environment":{"CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":1,"memory":null,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":true},"may_checkpoint":false,"snapshot":false,"interactive":false}');
INSERT INTO "requests" VALUES(30,'{"name":"being-estimated","command":{"program":["python3","slow.py"]},"directory":"/home/ada/project","environment":{"CARMA_SOCKET":"/home/ada/state/carma.sock","HOME":"/home/ada","LANG":"C.UTF-8","PATH":"/usr/bin:/bin"},"resources":{"gpus":1,"memory":null,"cpus":null,"host_memory":null,"time_limit":null,"idle_limit":1800.0,"exclusive":false,"mode":"auto"},"schedule":{"priority":0,"hold":false,"begin":null,"after":[],"at_most":null},"retries":{"failure":0},"hints":{"model":null,"batch":null,"dry_run":true},"may_checkpoint":false,"snapshot":false,"interactive":false}');
CREATE TABLE samples (
    device TEXT NOT NULL,
    minute INTEGER NOT NULL,
    readings INTEGER NOT NULL,
    memory_used INTEGER NOT NULL,
    smact REAL,
    smocc REAL,
    drama REAL,
    utilisation REAL,
    power REAL,
    PRIMARY KEY (device, minute)
) STRICT, WITHOUT ROWID;
INSERT INTO "samples" VALUES('s0/gpu0',29916013,3,0,NULL,NULL,NULL,0.0,52.0);
INSERT INTO "samples" VALUES('s0/gpu1',29916013,3,0,NULL,NULL,NULL,0.0,52.0);
CREATE TABLE standings (
    job INTEGER PRIMARY KEY REFERENCES jobs (id) ON DELETE CASCADE,
    standing TEXT NOT NULL
) STRICT;
INSERT INTO "standings" VALUES(1,'{"spec":{"id":1,"user":1000,"group":1000,"gpus":1,"may_span_servers":false,"memory":{"known":5120},"utilisation":{},"priority":0,"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"done","at":200.443,"outcome":"succeeded"},"submitted_at":67.371,"sequence":1,"put_back_rank":0,"attempts":1,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":133.072}');
INSERT INTO "standings" VALUES(2,'{"spec":{"id":2,"user":1000,"group":1000,"gpus":0,"may_span_servers":false,"memory":{},"utilisation":{},"priority":0,"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"done","at":74.159,"outcome":{"failed":{"code":3}}},"submitted_at":69.606,"sequence":2,"put_back_rank":0,"attempts":1,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":1,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":0.0}');
INSERT INTO "standings" VALUES(3,'{"spec":{"id":3,"user":1000,"group":1000,"gpus":1,"may_span_servers":false,"memory":{"known":3072},"utilisation":{},"priority":0,"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"done","at":84.075,"outcome":"succeeded"},"submitted_at":72.791,"sequence":3,"put_back_rank":0,"attempts":2,"climb":{"crashes":1,"floor":5632,"whole_gpu":false,"rung":1},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":11.284}');
INSERT INTO "standings" VALUES(4,'{"spec":{"id":4,"user":1000,"group":1000,"gpus":0,"may_span_servers":false,"memory":{},"utilisation":{},"priority":0,"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"done","at":199.057,"outcome":"cancelled"},"submitted_at":79.987,"sequence":4,"put_back_rank":0,"attempts":1,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":0.0}');
INSERT INTO "standings" VALUES(5,'{"spec":{"id":5,"user":1000,"group":1000,"gpus":0,"may_span_servers":false,"memory":{},"utilisation":{},"time_limit":2.0,"priority":0,"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"done","at":89.153,"outcome":"time_limit"},"submitted_at":84.653,"sequence":5,"put_back_rank":0,"attempts":1,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":0.0}');
INSERT INTO "standings" VALUES(6,'{"spec":{"id":6,"user":1000,"group":1000,"gpus":0,"may_span_servers":false,"memory":{},"utilisation":{},"priority":0,"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"done","at":96.54,"outcome":{"could_not_start":{"reason":"cannot run ./not-there: No such file or directory (os error 2)"}}},"submitted_at":90.053,"sequence":6,"put_back_rank":0,"attempts":1,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":1,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":0.0}');
INSERT INTO "standings" VALUES(7,'{"spec":{"id":7,"user":1000,"group":1000,"gpus":0,"may_span_servers":false,"memory":{},"utilisation":{},"priority":0,"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"done","at":223.138,"outcome":{"failed":{"code":1}}},"submitted_at":97.392,"sequence":7,"put_back_rank":0,"attempts":1,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":1,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":0.0}');
INSERT INTO "standings" VALUES(8,'{"spec":{"id":8,"user":1000,"group":1000,"gpus":0,"may_span_servers":false,"memory":{},"utilisation":{},"priority":0,"dependencies":[{"job":7,"after":"ok"}],"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"done","at":223.138,"outcome":{"dependency_failed":{"on":7}}},"submitted_at":101.113,"sequence":8,"put_back_rank":0,"attempts":0,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":0.0}');
INSERT INTO "standings" VALUES(9,'{"spec":{"id":9,"user":1000,"group":1000,"gpus":0,"may_span_servers":false,"memory":{},"utilisation":{},"priority":0,"array":{"array":9,"index":1,"at_most":2},"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"done","at":108.272,"outcome":"succeeded"},"submitted_at":103.201,"sequence":9,"put_back_rank":0,"attempts":1,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":0.0}');
INSERT INTO "standings" VALUES(10,'{"spec":{"id":10,"user":1000,"group":1000,"gpus":0,"may_span_servers":false,"memory":{},"utilisation":{},"priority":0,"array":{"array":9,"index":2,"at_most":2},"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"done","at":108.494,"outcome":"succeeded"},"submitted_at":103.214,"sequence":10,"put_back_rank":0,"attempts":1,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":0.0}');
INSERT INTO "standings" VALUES(11,'{"spec":{"id":11,"user":1000,"group":1000,"gpus":0,"may_span_servers":false,"memory":{},"utilisation":{},"priority":0,"array":{"array":9,"index":3,"at_most":2},"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"done","at":116.261,"outcome":"succeeded"},"submitted_at":103.22,"sequence":11,"put_back_rank":0,"attempts":1,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":0.0}');
INSERT INTO "standings" VALUES(12,'{"spec":{"id":12,"user":1000,"group":1000,"gpus":1,"may_span_servers":false,"memory":{"known":1024},"utilisation":{},"priority":0,"array":{"array":12,"index":0},"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"done","at":117.629,"outcome":"succeeded"},"submitted_at":110.224,"sequence":12,"put_back_rank":0,"attempts":1,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":7.405}');
INSERT INTO "standings" VALUES(13,'{"spec":{"id":13,"user":1000,"group":1000,"gpus":1,"may_span_servers":false,"memory":{"known":1024},"utilisation":{},"priority":0,"array":{"array":12,"index":1},"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"done","at":123.058,"outcome":"succeeded"},"submitted_at":110.247,"sequence":13,"put_back_rank":0,"attempts":1,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":5.429}');
INSERT INTO "standings" VALUES(14,'{"spec":{"id":14,"user":1000,"group":1000,"gpus":1,"may_span_servers":false,"memory":{"known":1024},"utilisation":{},"priority":0,"array":{"array":12,"index":2},"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"done","at":127.449,"outcome":"succeeded"},"submitted_at":110.253,"sequence":14,"put_back_rank":0,"attempts":1,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":7.97}');
INSERT INTO "standings" VALUES(15,'{"spec":{"id":15,"user":1000,"group":1000,"gpus":1,"may_span_servers":false,"memory":{"known":1024},"utilisation":{},"priority":0,"array":{"array":12,"index":3},"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"done","at":129.73,"outcome":"succeeded"},"submitted_at":110.259,"sequence":15,"put_back_rank":0,"attempts":1,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":6.672}');
INSERT INTO "standings" VALUES(16,'{"spec":{"id":16,"user":1000,"group":1000,"gpus":0,"may_span_servers":false,"memory":{},"utilisation":{},"priority":0,"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":true,"retries":{"failure":0}},"state":{"state":"done","at":340.635,"outcome":"cancelled"},"submitted_at":115.866,"sequence":16,"put_back_rank":0,"attempts":2,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":0.0}');
INSERT INTO "standings" VALUES(17,'{"spec":{"id":17,"user":1000,"group":1000,"gpus":1,"may_span_servers":false,"memory":{"estimated":{"expected":2734,"upper":3098}},"utilisation":{"smact":0.6390912060991241,"smocc":0.313128853565388,"drama":0.32218186144497135},"priority":0,"hold":true,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"done","at":138.628,"outcome":"succeeded"},"submitted_at":122.962,"sequence":17,"put_back_rank":0,"attempts":1,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":3.522}');
INSERT INTO "standings" VALUES(18,'{"spec":{"id":18,"user":1000,"group":1000,"gpus":1,"may_span_servers":false,"memory":{"estimated":{"expected":132674,"upper":150325}},"utilisation":{"smact":0.7112344014092287,"smocc":0.3259302565166422,"drama":0.35094804307846034},"priority":0,"hold":true,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"done","at":140.939,"outcome":"cancelled"},"submitted_at":129.309,"sequence":18,"put_back_rank":0,"attempts":0,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":0.0}');
INSERT INTO "standings" VALUES(19,'{"spec":{"id":19,"user":1000,"group":1000,"gpus":0,"may_span_servers":false,"memory":{},"utilisation":{},"priority":0,"hold":true,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"done","at":200.463,"outcome":"succeeded"},"submitted_at":132.707,"sequence":19,"put_back_rank":0,"attempts":1,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":0.0}');
INSERT INTO "standings" VALUES(20,'{"spec":{"id":20,"user":1000,"group":1000,"gpus":1,"may_span_servers":false,"memory":{"known":5120,"estimated":{"expected":4096,"upper":4352}},"utilisation":{"smact":0.36525371962718006,"smocc":0.185342304950781,"drama":0.31371976252131617},"expected_duration":133.033,"priority":0,"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"done","at":520.154,"outcome":"succeeded"},"submitted_at":393.153,"sequence":20,"put_back_rank":0,"attempts":1,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":127.001}');
INSERT INTO "standings" VALUES(21,'{"spec":{"id":21,"user":1000,"group":1000,"gpus":1,"may_span_servers":false,"memory":{"estimated":{"expected":4096,"upper":4278}},"utilisation":{"smact":0.36313955041816803,"smocc":0.18429401431162235,"drama":0.31194091722109085},"expected_duration":130.0,"priority":0,"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"done","at":656.367,"outcome":"succeeded"},"submitted_at":524.564,"sequence":21,"put_back_rank":0,"attempts":1,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":131.803}');
INSERT INTO "standings" VALUES(22,'{"spec":{"id":22,"user":1000,"group":1000,"gpus":1,"may_span_servers":false,"memory":{},"utilisation":{},"priority":0,"hold":true,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"held","since":662.45,"resumes":"queued"},"submitted_at":662.45,"sequence":22,"put_back_rank":0,"attempts":0,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":0.0}');
INSERT INTO "standings" VALUES(23,'{"spec":{"id":23,"user":1000,"group":1000,"gpus":1,"may_span_servers":false,"memory":{"known":2048},"utilisation":{},"priority":0,"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"held","since":666.312,"resumes":"queued"},"submitted_at":665.137,"sequence":23,"put_back_rank":0,"attempts":0,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":0.0}');
INSERT INTO "standings" VALUES(24,'{"spec":{"id":24,"user":1000,"group":1000,"gpus":1,"may_span_servers":false,"memory":{"known":2048},"utilisation":{},"priority":-3,"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"queued","since":670.352},"submitted_at":670.352,"sequence":24,"put_back_rank":0,"attempts":0,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":0.0}');
INSERT INTO "standings" VALUES(25,'{"spec":{"id":25,"user":1000,"group":1000,"gpus":1,"may_span_servers":false,"memory":{"known":2048},"utilisation":{},"priority":0,"dependencies":[{"job":22,"after":"any"}],"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"queued","since":673.726},"submitted_at":673.726,"sequence":25,"put_back_rank":0,"attempts":0,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":0.0}');
INSERT INTO "standings" VALUES(26,'{"spec":{"id":26,"user":1000,"group":1000,"gpus":1,"may_span_servers":false,"memory":{"known":2048},"utilisation":{},"priority":0,"array":{"array":26,"index":0},"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"queued","since":675.681},"submitted_at":675.681,"sequence":26,"put_back_rank":0,"attempts":0,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":0.0}');
INSERT INTO "standings" VALUES(27,'{"spec":{"id":27,"user":1000,"group":1000,"gpus":1,"may_span_servers":false,"memory":{"known":2048},"utilisation":{},"priority":0,"array":{"array":26,"index":1},"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"queued","since":675.688},"submitted_at":675.688,"sequence":27,"put_back_rank":0,"attempts":0,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":0.0}');
INSERT INTO "standings" VALUES(28,'{"spec":{"id":28,"user":1000,"group":1000,"gpus":1,"may_span_servers":false,"memory":{"known":2048},"utilisation":{},"priority":0,"begin":5431622234.952,"hold":false,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"queued","since":678.941},"submitted_at":678.941,"sequence":28,"put_back_rank":0,"attempts":0,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":0.0}');
INSERT INTO "standings" VALUES(29,'{"spec":{"id":29,"user":1000,"group":1000,"gpus":1,"may_span_servers":false,"memory":{},"utilisation":{},"priority":0,"hold":true,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"held","since":802.204,"resumes":"queued"},"submitted_at":802.204,"sequence":29,"put_back_rank":0,"attempts":0,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":0.0}');
INSERT INTO "standings" VALUES(30,'{"spec":{"id":30,"user":1000,"group":1000,"gpus":1,"may_span_servers":false,"memory":{},"utilisation":{},"priority":0,"hold":true,"exclusive":false,"mode":"auto","may_checkpoint":false,"retries":{"failure":0}},"state":{"state":"held","since":927.375,"resumes":"queued"},"submitted_at":927.375,"sequence":30,"put_back_rank":0,"attempts":0,"climb":{"crashes":0,"floor":0,"whole_gpu":false,"rung":0},"failures":0,"displacements":0,"progress":null,"checkpointed_at":null,"saved_progress":null,"attained":0.0}');
CREATE TABLE stays (
    job INTEGER NOT NULL,
    number INTEGER NOT NULL,
    device TEXT NOT NULL,
    promised INTEGER NOT NULL,
    launched INTEGER NOT NULL,
    ended INTEGER,
    PRIMARY KEY (job, number, device),
    FOREIGN KEY (job, number) REFERENCES attempts (job, number) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
INSERT INTO "stays" VALUES(1,1,'s0/gpu0',5120,1794960900054,1794961033067);
INSERT INTO "stays" VALUES(3,1,'s0/gpu1',3072,1794960905473,1794960912272);
INSERT INTO "stays" VALUES(3,2,'s0/gpu1',5632,1794960912295,1794960916733);
INSERT INTO "stays" VALUES(12,1,'s0/gpu1',1024,1794960942906,1794960950287);
INSERT INTO "stays" VALUES(13,1,'s0/gpu1',1024,1794960950318,1794960955718);
INSERT INTO "stays" VALUES(14,1,'s0/gpu0',1024,1794960952164,1794960960107);
INSERT INTO "stays" VALUES(15,1,'s0/gpu1',1024,1794960955739,1794960962388);
INSERT INTO "stays" VALUES(17,1,'s0/gpu1',3098,1794960967785,1794960971279);
INSERT INTO "stays" VALUES(20,1,'s0/gpu0',5120,1794961225840,1794961352779);
INSERT INTO "stays" VALUES(21,1,'s0/gpu0',4278,1794961357249,1794961488992);
CREATE TABLE tallies (
    tally TEXT PRIMARY KEY,
    value REAL NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "tallies" VALUES('"submitted"',30.0);
INSERT INTO "tallies" VALUES('{"bucket":["peak_of_declared",3]}',2.0);
INSERT INTO "tallies" VALUES('{"bucket":["peak_of_estimate",5]}',2.0);
INSERT INTO "tallies" VALUES('{"bucket":["run",0]}',14.0);
INSERT INTO "tallies" VALUES('{"bucket":["run",2]}',7.0);
INSERT INTO "tallies" VALUES('{"bucket":["wait",0]}',13.0);
INSERT INTO "tallies" VALUES('{"bucket":["wait",1]}',3.0);
INSERT INTO "tallies" VALUES('{"bucket":["wait",2]}',2.0);
INSERT INTO "tallies" VALUES('{"bucket":["wait",3]}',1.0);
INSERT INTO "tallies" VALUES('{"decided":"finish"}',21.0);
INSERT INTO "tallies" VALUES('{"decided":"launch"}',21.0);
INSERT INTO "tallies" VALUES('{"decided":"requeue"}',2.0);
INSERT INTO "tallies" VALUES('{"decided":"signal"}',4.0);
INSERT INTO "tallies" VALUES('{"ended":"could_not_start"}',1.0);
INSERT INTO "tallies" VALUES('{"ended":"failed"}',6.0);
INSERT INTO "tallies" VALUES('{"ended":"out_of_memory"}',1.0);
INSERT INTO "tallies" VALUES('{"ended":"succeeded"}',13.0);
INSERT INTO "tallies" VALUES('{"energy":"ada"}',5.69819759999999951105e+04);
INSERT INTO "tallies" VALUES('{"finished":"cancelled"}',3.0);
INSERT INTO "tallies" VALUES('{"finished":"could_not_start"}',1.0);
INSERT INTO "tallies" VALUES('{"finished":"dependency_failed"}',1.0);
INSERT INTO "tallies" VALUES('{"finished":"failed"}',2.0);
INSERT INTO "tallies" VALUES('{"finished":"succeeded"}',13.0);
INSERT INTO "tallies" VALUES('{"finished":"time_limit"}',1.0);
INSERT INTO "tallies" VALUES('{"requeued":"out_of_memory"}',1.0);
INSERT INTO "tallies" VALUES('{"requeued":"requested"}',1.0);
INSERT INTO "tallies" VALUES('{"sum":"peak_of_declared"}',1.6);
INSERT INTO "tallies" VALUES('{"sum":"peak_of_estimate"}',2.0);
INSERT INTO "tallies" VALUES('{"sum":"run"}',9.42016999999999939032e+02);
INSERT INTO "tallies" VALUES('{"sum":"wait"}',110.141);
CREATE INDEX jobs_unfinished ON jobs (sequence) WHERE ended IS NULL;
CREATE INDEX jobs_by_end ON jobs (ended) WHERE ended IS NOT NULL;
CREATE INDEX jobs_by_user ON jobs (uid);
CREATE INDEX jobs_by_name ON jobs (name) WHERE name IS NOT NULL;
CREATE INDEX jobs_by_array ON jobs (array) WHERE array IS NOT NULL;
CREATE INDEX attempts_running ON attempts (job) WHERE ended IS NULL;
CREATE INDEX attempts_by_end ON attempts (ended) WHERE ended IS NOT NULL;
CREATE INDEX events_by_job ON events (job) WHERE job IS NOT NULL;
CREATE INDEX samples_by_minute ON samples (minute);
CREATE INDEX stays_by_device ON stays (device, ended, launched);
CREATE INDEX memory_steps_by_time ON memory_steps (at);
CREATE INDEX attempts_energy ON attempts (ended, job, joules) WHERE joules IS NOT NULL;
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('events',117);
COMMIT;
