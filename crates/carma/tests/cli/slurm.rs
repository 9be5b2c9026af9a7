//! CARMA with a real Slurm.

mod sbatch;
