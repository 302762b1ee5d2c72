//! MedGuards on scripted models.
